#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_ssh.sh - the one executable through a real ssh: the profile comes as it was written, and nothing stays behind when ssh
# is stopped. sshd is the other end of the client's pipe: no port, no service.
# timeout: 120
. tests/dist/lib.sh
dist_init ssh
sshd=/usr/sbin/sshd
have ssh && have ssh-keygen && [ -x $sshd ] || skip_all "no ssh and sshd"
build_holder "$work/holder" ${CC:-gcc} || { not_ok setup "the workload" "$work/log"; dist_end; }
mkdir -p /run/sshd
cp "$one" "$work/heaptap"
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/mine"
cat >"$work/config" <<END
HostKey $work/host
AuthorizedKeysFile $work/mine.pub
PermitRootLogin yes
StrictModes no
UsePAM no
END
# the arguments of ssh: a function would stand between it and a signal
host=(ssh -F /dev/null -i "$work/mine" -o "ProxyCommand=$sshd -i -f $work/config" -o BatchMode=yes
	-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR root@host)
timeout 20 "${host[@]}" true 2>"$work/log" || skip_all "root cannot log in: $(head -n 1 "$work/log")"
"$work/holder" 60 &
target=$!
pids="$pids $target"

timeout 60 "${host[@]}" "$work/heaptap record -o - -d 3s --max-overhead off --rate 4096 -p $target" >"$work/p.pb.gz" 2>"$work/log" &&
	ok "a recording" || not_ok "a recording" "status $?" "$work/log"
names "its functions, lines" "$work/p.pb.gz" 'site_of_holder .*holder.c:[0-9]+'

# Ctrl-C: of the client only, there is no terminal that would send a signal to the other end
"${host[@]}" "$work/heaptap record -o - --max-overhead off -p $target" >"$work/stopped" 2>"$work/log" &
client=$!
pids="$pids $client"
is_recording() { pgrep -f "^$work/heaptap record" >/dev/null; }
await 20 grep -q '^heaptap: recording' "$work/log" && is_recording || not_ok "ssh is stopped" "it does not record" "$work/log"
kill -TERM $client
wait $client 2>/dev/null
await 20 eval '! is_recording' && python3 tests/e2e/same_text.py $target >"$work/log" && kill -0 $target &&
	ok "ssh is stopped: neither heaptap nor a probe stays" || not_ok "ssh is stopped" "something stays" "$work/log"
dist_end
