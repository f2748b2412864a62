# Reads the user's own file. While it is read, ZDOTDIR has the user's value.
__missiond_zdotdir=$ZDOTDIR
if [[ -n ${MISSIOND_ZDOTDIR-} ]]; then ZDOTDIR=$MISSIOND_ZDOTDIR; else unset ZDOTDIR; fi
if [[ -r ${ZDOTDIR:-$HOME}/@FILE@ ]]; then . "${ZDOTDIR:-$HOME}/@FILE@" || :; fi
if [[ @FILE@ == .zshrc ]]; then
  unset __missiond_zdotdir MISSIOND_ZDOTDIR
else
  if [[ -n ${ZDOTDIR-} ]]; then MISSIOND_ZDOTDIR=$ZDOTDIR; fi
  ZDOTDIR=$__missiond_zdotdir
fi
