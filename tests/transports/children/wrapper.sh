# Wrappers as they are met: the server is a grandchild (fault 1). $1 says how it is started, $2 marks it.
here=$(dirname "$0")
case $1 in
wait) exec 3<&0; "$PYTHON" -S -E "$here/server.py" stubborn "$2" <&3 & wait ;;
leave) exec 3<&0; "$PYTHON" -S -E "$here/server.py" stubborn "$2" <&3 & exit 3 ;;
setsid) exec 3<&0; setsid "$PYTHON" -S -E "$here/server.py" stubborn "$2" <&3 & wait ;;
jobs) set -m; exec 3<&0; "$PYTHON" -S -E "$here/server.py" stubborn "$2" <&3 & wait ;;
esac
