[ -r /etc/profile ] && . /etc/profile
for __missiond_file in ~/.bash_profile ~/.bash_login ~/.profile; do
  if [ -r "$__missiond_file" ]; then
    . "$__missiond_file"
    break
  fi
done
unset __missiond_file
