#!/bin/sh
# Runs COMMAND and returns its exit code: watched.sh SECONDS COMMAND... If it has not ended after SECONDS, says what each
# of its processes but shells waits for, so that a hang that shows once in a hundred runs can be found, ends them and returns 124.
seconds=$1
shift
"$@" &
root=$!
descendants() {
  echo "$1"
  for child in $(ps -o pid= --ppid "$1"); do descendants "$child"; done
}
say_where() {
  for pid in $(descendants $root); do
    [ -d "/proc/$pid" ] || continue
    case $(cat "/proc/$pid/comm") in bash | sh | cat | ps) continue ;; esac
    echo "# process $pid: $(tr '\0' ' ' < "/proc/$pid/cmdline" | cut -c 1-300)"
    for task in "/proc/$pid/task/"*; do
      echo "#   $(cat "$task/comm") in $(cat "$task/wchan"), system call $(cut -d ' ' -f 1-4 "$task/syscall")"
      head -6 "$task/stack" 2> /dev/null | sed 's/^/#     /'
    done
    if command -v gdb > /dev/null; then
      gdb -p "$pid" -batch -ex 'thread apply all bt 12' 2> /dev/null | grep -E '^(Thread|#)' | head -60 | sed 's/^/#     /'
    fi
  done
}
waited=0
while kill -0 $root 2> /dev/null; do
  if [ $waited -ge $((seconds * 5)) ]; then
    echo "# watched: not at its end after $seconds s"
    say_where 2> /dev/null
    kill -KILL $(descendants $root) 2> /dev/null
    exit 124
  fi
  sleep 0.2
  waited=$((waited + 1))
done
wait $root
