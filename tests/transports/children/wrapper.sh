# Wrappers as they are met: the server is a grandchild (fault 1). $1 says how it is started, $2 marks it, $3 is its mode.
here=$(dirname "$0")
# What a shell with job control does; without a terminal `set -m` is refused by some.
group="import os, sys; os.setpgid(0, 0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
case $1 in
wait) exec 3<&0; "$PYTHON" -S -E "$here/server.py" ${3:-stubborn} "$2" <&3 & wait ;;
leave) exec 3<&0; "$PYTHON" -S -E "$here/server.py" ${3:-stubborn} "$2" <&3 & exit 3 ;;
setsid) exec 3<&0; setsid "$PYTHON" -S -E "$here/server.py" ${3:-stubborn} "$2" <&3 & wait ;;
daemon)
    (setsid "$PYTHON" -S -E "$here/server.py" stubborn "$2" </dev/null &)
    read end ;;
jobs) exec 3<&0; "$PYTHON" -S -E -c "$group" -S -E "$here/server.py" ${3:-stubborn} "$2" <&3 & wait ;;
esac
