"""A tiny line server. Each mode of the first argument misbehaves in one way; see tests/transports."""

import os
import signal
import sys
import time

MODE = sys.argv[1]
OUT = 1


def write(data, fd=OUT):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def lines():
    rest = b""
    while chunk := os.read(0, 65536):
        rest += chunk
        while b"\n" in rest:
            line, _, rest = rest.partition(b"\n")
            yield line


def echo():
    for line in lines():
        write(b'{"echo":' + line + b"}\n")


def ignore_all():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def ready():
    write(b'{"ready":%d}\n' % os.getpid())


def say(*names):
    def take(number, _frame):
        write(f"caught {signal.Signals(number).name}\n".encode(), 2)
        if number in fatal:
            os._exit(0)

    fatal = [getattr(signal, name) for name in names]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, take)


def main():
    if MODE == "echo":
        echo()
    elif MODE == "env":
        write(repr(sorted(os.environ)).replace("'", '"').encode() + b"\n")
        write(b'{"env":' + repr(sorted(os.environ)).replace("'", '"').encode() + b"}\n")
        echo()
    elif MODE == "stubborn":  # fault 3
        ignore_all()
        ready()
        while True:
            time.sleep(3600)
    elif MODE == "rungs":  # leaves at the signal that is named, says what it caught
        say(sys.argv[2])
        ready()
        while True:
            time.sleep(3600)
    elif MODE == "eof":  # leaves at the end of input, ignores signals
        ignore_all()
        ready()
        echo()
    elif MODE == "hermit":  # outlives its runtime: answers once, then hears nothing
        ignore_all()
        next(lines())
        ready()
        while True:
            time.sleep(3600)
    elif MODE == "exit":  # fault 5
        write(b"ERROR: TOKEN missing\n", 2)
        sys.exit(int(sys.argv[2]))
    elif MODE == "answer-exit":  # dies with its first answer
        for line in lines():
            write(b"x" * 3 + b"\n", 2)
            write(b'{"last":' + line + b"}\n")
            os._exit(7)
    elif MODE == "suicide":
        ready()
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
    elif MODE == "stderr":  # faults 7, 8
        for line in lines():
            for n in range(1024):
                write(b"%06d " % n + b"e" * 1016 + b"\n", 2)
            write(line + b"\n")
    elif MODE == "stderr-flood":
        for line in lines():
            for _ in range(256):
                write(b"\x1b[31mno line end \x07" * 4096, 2)
            write(line + b"\n")
    elif MODE == "banner":  # fault 9
        for n in range(60):
            write(b"[INFO] starting part %d\n" % n + b"\n \r\n")
        write(b'\x1b[31mred\x1b[0m banner\nnull\n3\n"text"\n')
        write(b'{"ok":1}\n  {"ok":2}\n[{"ok":3}]\n[12, {"ok":4}]\n[12:01:07] {"ok":5}\n[1] started\n')
        echo()
    elif MODE == "chunks":  # fault 10
        write(b'{"n":1}\n{"n":2}\n{"n":3}\n')
        for byte in b'{"n":4}\n':
            write(bytes([byte]))
            time.sleep(0.001)
        write(b'{"n":5}\n{"n"')
        time.sleep(0.02)
        write(b":6}\n")
        echo()
    elif MODE == "large":  # fault 11
        for size in map(int, sys.argv[2:]):
            write(b'{"size":"' + b"x" * size + b'"}\n')
        echo()
    elif MODE == "endless":  # fault 12
        while True:
            write(b"x" * 65536)
    elif MODE == "utf8":  # fault 13
        for byte in '{"text":"€ 😀 ü"}\n'.encode():
            write(bytes([byte]))
            time.sleep(0.001)
        for byte in "sterr € 😀 ü\n".encode():
            write(bytes([byte]), 2)
            time.sleep(0.001)
        echo()
    elif MODE == "crlf":  # fault 14: repeats what it read, byte for byte, as hexadecimal
        write(b'{"a":1}\r\n\r\n{"b":2}\r\n')
        while chunk := os.read(0, 65536):
            write(b'{"got":"' + chunk.hex().encode() + b'"}\r\n')
    elif MODE == "both-full":  # fault 18
        for n in range(5000):
            write(b'{"progress":%d,"pad":"%s"}\n' % (n, b"p" * 190))
        for line in lines():
            write(b'{"length":%d}\n' % len(line))
    elif MODE == "close-stdout":
        ready()
        os.close(1)
        time.sleep(3600)
    elif MODE == "close-stdin":
        os.close(0)
        ready()
        time.sleep(3600)
    elif MODE == "deaf":  # never reads
        ready()
        time.sleep(3600)
    elif MODE == "slow-reader":  # reads only after a signal
        signal.signal(signal.SIGUSR1, lambda *_: None)
        ready()
        signal.pause()
        for line in lines():
            write(b'{"length":%d}\n' % len(line))
    elif MODE == "last-words":  # blocks on a full pipe unless somebody reads while it is being stopped
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        ready()
        for _ in lines():
            pass
        write(b"z" * 1_000_000 + b"\n")
        write(b"w" * 1_000_000 + b"\n", 2)
    elif MODE == "fds":
        write(b'{"fds":%s}\n' % repr(sorted(int(entry.name) for entry in os.scandir("/proc/self/fd"))).encode())
        echo()
    elif MODE == "stopped":  # by the signal that is named first; leaves at the second, if that is one
        say(*[name for name in sys.argv[3:4] if name in ("SIGINT", "SIGTERM")])
        ready()
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
        while True:
            time.sleep(3600)


main()
