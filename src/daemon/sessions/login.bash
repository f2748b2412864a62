# A login bash reads a file of ours only in its POSIX mode (ENV), and in that mode it reads none of the user's files. So
# this file leaves that mode and reads the user's files.
set +o posix
if [ -n "${MISSIOND_ENV-}" ]; then ENV=$MISSIOND_ENV; else unset ENV; fi
unset MISSIOND_ENV
if [ "${HISTFILE-}" = ~/.sh_history ]; then HISTFILE=~/.bash_history; fi
if [ -r /etc/profile ]; then . /etc/profile || :; fi
for __missiond_file in ~/.bash_profile ~/.bash_login ~/.profile; do
  if [ -r "$__missiond_file" ]; then
    . "$__missiond_file" || :
    break
  fi
done
unset __missiond_file
