# row: 77
# about: stopped processes do not hear a polite end
# control: none, time is not a thing one reaches
# limits: {"timeout_s": 1}
# status: timeout
trap '' TERM INT HUP QUIT
sleep 100 &
kill -STOP $!
(trap '' TERM; kill -STOP $BASHPID; sleep 100) &
kill -STOP $$
sleep 100
