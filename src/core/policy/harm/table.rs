//! The table of programs and their harms.

pub mod code;

use super::subcommands::Subcommands;
use super::{Harm, awk, builds, git, javascript, languages, scripts};
use crate::core::policy::shell::Word;

pub struct Row {
    /// Names, separated by spaces, as in every list of this table.
    pub programs: &'static str,
    pub danger: Danger,
}

/// A harm. Its text completes a sentence that begins with the program or the option.
pub enum Danger {
    /// With any arguments.
    Always(&'static str),
    /// With any arguments, unless a rule names the program.
    Unnamed(&'static str),
    /// These options: letters, words with one or two dashes, and letters that take a value (the rest of their word).
    Options {
        short: &'static str,
        long: &'static str,
        valued: &'static str,
        why: &'static str,
    },
    /// Subcommands other than these.
    Beyond(&'static Subcommands),
    /// These subcommands.
    Subcommands(&'static str, &'static str),
    /// These subcommands, also abbreviated; `whole` are words that mean another one.
    Abbreviated {
        list: &'static str,
        whole: &'static str,
        why: &'static str,
    },
    /// These words, in any position.
    Words(&'static str, &'static str),
    /// Words that begin with one of these.
    Starts(&'static str, &'static str),
    /// Words that contain one of these.
    Text(&'static str, &'static str),
    /// More operands than this. The values of the options `valued` do not count.
    Operands {
        most: usize,
        valued: &'static str,
        why: &'static str,
    },
    /// Whatever the function finds.
    Judged(fn(&[Word]) -> Vec<Harm>),
}

use Danger::{Always, Judged, Operands, Text, Unnamed, Words};

const RUNS: &str = "run another program";
const WRITES: &str = "write a file";
const EITHER: &str = "run another program or write a file";
const RUNS_WORDS: &str = "runs the program that its arguments name";
const RUNS_CODE: &str = "run code from the command line";

const fn row(programs: &'static str, danger: Danger) -> Row {
    Row { programs, danger }
}

const fn options(short: &'static str, long: &'static str, why: &'static str) -> Danger {
    Danger::Options {
        short,
        long,
        valued: "",
        why,
    }
}

const fn valued(
    short: &'static str,
    valued: &'static str,
    long: &'static str,
    why: &'static str,
) -> Danger {
    Danger::Options {
        short,
        long,
        valued,
        why,
    }
}

const fn abbreviated(list: &'static str, whole: &'static str) -> Danger {
    Danger::Abbreviated {
        list,
        whole,
        why: "runs other programs, publishes, or changes what will be run",
    }
}

/// Ordinary programs; those that run code are in [`code`].
pub const TABLE: &[Row] = &[
    // Programs that run their arguments.
    row(
        "env sudo doas pkexec su runuser command builtin exec eval source . watch setsid \
            ionice flock chrt taskset chroot unshare nsenter systemd-run systemd-inhibit \
            parallel busybox toybox strace ltrace gdb lldb perf script expect screen tmux entr \
            hyperfine watchexec noglob nocorrect coproc unbuffer rlwrap caffeinate xvfb-run \
            firejail bwrap at batch crontab xargs timeout nice nohup stdbuf time proxychains \
            proxychains4 torsocks torify setarch linux32 linux64 prlimit cgexec daemonize \
            start-stop-daemon faketime dbus-run-session ssh-agent dotenv direnv mise asdf \
            ld.so setpriv numactl catchsegv fakeroot proot valgrind cpulimit gosu su-exec tini \
            dumb-init chronic ifne ccache sccache distcc nodemon byobu dtach nix-shell rr \
            heaptrack inotifywatch ansible ansible-playbook ansible-console",
        Always(RUNS_WORDS),
    ),
    row(
        "sh bash zsh dash ksh mksh ash fish rbash csh tcsh pwsh tclsh",
        Always("is a shell and can run anything"),
    ),
    row(
        "vi vim nvim view ex ed emacs nano pico sqlite3 psql mysql gnuplot bc dc socat ncat \
            nc netcat telnet ftp sftp lftp info pinfo mail mutt micro joe hexedit jed ne \
            ipython irb iex ghci jshell jrunscript jjs clisp",
        Always("can run other programs or write files from its input"),
    ),
    row(
        "alias unalias bind enable hash trap set shopt read mapfile readarray getopts let \
            fc jobs complete compgen compopt export declare typeset local readonly unset \
            function functions autoload zmodload zle vared sched emulate setopt unsetopt wait \
            history",
        Always("changes how the shell understands what follows"),
    ),
    row("printf", options("v", "", "set a variable of the shell")),
    row("test [ [[", Words("-v -R", "evaluates what it is given")),
    row(
        "wget aria2c axel",
        Always("writes files with names from its input"),
    ),
    row(
        "reboot shutdown halt poweroff init telinit kexec mkfs fdisk sfdisk parted mount umount \
            swapon swapoff losetup useradd userdel usermod groupadd groupdel gpasswd passwd chpasswd \
            chsh visudo vipw iptables ip6tables nft ufw sysctl insmod modprobe rmmod setcap chattr \
            setfacl ldconfig service update-alternatives debconf-set-selections",
        Unnamed("changes the machine"),
    ),
    row(
        "kill pkill killall",
        Words("1 -1 0 missiond claude", "would end what must go on"),
    ),
    row(
        "ssh-keygen ssh-add ssh-copy-id",
        Always("makes or hands out keys"),
    ),
    row("chmod", Judged(scripts::chmod_harms)),
    // Programs with a language of their own.
    row("git", Judged(git::harms)),
    row("find", Judged(scripts::find_harms)),
    row("sed gsed", Judged(scripts::sed_harms)),
    row("awk gawk mawk nawk", Judged(awk::harms)),
    row("tar gtar bsdtar", Judged(scripts::tar_harms)),
    row("make gmake", Judged(scripts::make_harms)),
    // Options of ordinary programs.
    row("fd fdfind", options("xX", "--exec --exec-batch", RUNS)),
    row("rg", options("", "--pre --hostname-bin --search-zip", RUNS)),
    row("rg", valued("z", "ABCEefgjmMrtT", "", RUNS)),
    row("ag", options("", "--pager", RUNS)),
    row(
        "sort",
        valued("o", "kSTt", "--output --compress-program", EITHER),
    ),
    row(
        "sort",
        options("", "--files0-from", "read the files that a file names"),
    ),
    row("install", options("", "--strip-program", RUNS)),
    row("ack", options("", "--pager --ackrc", RUNS)),
    row(
        "zstd",
        options("o", "--output-dir-flat --output-dir-mirror", WRITES),
    ),
    row("ar", Text("x", "writes files with names from its input")),
    row(
        "unrar rar",
        Words("x e", "writes files with names from its input"),
    ),
    row("unar", Always("writes files with names from its input")),
    row("xmllint xsltproc", options("o", "--output --shell", EITHER)),
    row(
        "tcpdump tshark dumpcap",
        options("zwF", "--postrotate-command", EITHER),
    ),
    row(
        "nmap",
        Text("--script -oN -oX -oG -oA -oS --resume", EITHER),
    ),
    row(
        "convert magick mogrify identify composite montage",
        Text(
            "| msl: mvg: ephemeral: http: https: url: @",
            "run another program or fetch a file",
        ),
    ),
    row("gs", Text("%pipe% OutputFile -o --permit", EITHER)),
    row("dot neato", options("O", "", WRITES)),
    row(
        "apt apt-get aptitude",
        options("oc", "--option --config-file", RUNS),
    ),
    row(
        "dpkg",
        options(
            "",
            "--admindir --instdir --root --pre-invoke --post-invoke --status-logger",
            RUNS,
        ),
    ),
    row(
        "rpm",
        options(
            "ED",
            "--eval --pipe --define --root --dbpath --rcfile --macros",
            RUNS,
        ),
    ),
    row(
        "nix flatpak snap heroku fly flyctl gcloud vagrant stack cabal",
        Danger::Subcommands(
            "run exec develop shell ssh scp console ps:exec global run-script compute",
            "runs other programs",
        ),
    ),
    row(
        "composer",
        abbreviated(
            "run run-script exec global config create-project self-update selfupdate",
            "",
        ),
    ),
    row(
        "dotnet",
        Danger::Subcommands("exec script tool fsi", "runs other programs"),
    ),
    row("rustc rustdoc", Text("@", "read options from a file")),
    row(
        "rustdoc",
        options("o", "--output --test-builder --test-runtool", EITHER),
    ),
    row("mysqldump", options("rT", "--result-file --tab", WRITES)),
    row(
        "redis-cli mongo mongosh",
        options("", "--eval --shell", RUNS_CODE),
    ),
    row(
        "http https xh httpie",
        options("od", "--output --download", WRITES),
    ),
    row("http https xh httpie", Text("@", "send a file")),
    row("mocha rspec rubocop", options("r", "--require", RUNS_CODE)),
    row("jest", Judged(javascript::jest_harms)),
    row(
        "eslint",
        options(
            "cof",
            "--config --rulesdir --resolve-plugins-relative-to --plugin --parser --output-file --format",
            EITHER,
        ),
    ),
    row("prettier", options("", "--plugin --config", RUNS_CODE)),
    row(
        "vitest vite webpack rollup playwright cypress",
        options("c", "--config --config-file --globalSetup", RUNS_CODE),
    ),
    row(
        "mypy",
        options(
            "",
            "--python-executable --install-types --config-file",
            RUNS,
        ),
    ),
    row(
        "pylint",
        options("", "--load-plugins --init-hook --rcfile", RUNS_CODE),
    ),
    row(
        "phpunit",
        options("", "--bootstrap --configuration", RUNS_CODE),
    ),
    row(
        "bazel bazelisk buck buck2",
        options(
            "",
            "--bazelrc --run_under --override_repository --host_jvm_args",
            RUNS,
        ),
    ),
    row(
        "ctest",
        options("S", "--script --build-and-test --build-makeprogram", RUNS),
    ),
    row(
        "uniq",
        Operands {
            most: 1,
            valued: "-f -s -w --skip-fields --skip-chars --check-chars",
            why: "writes the second file that it is given",
        },
    ),
    row("shuf", options("o", "--output", WRITES)),
    row("split", options("", "--filter", RUNS)),
    row("dd", Text("of=", WRITES)),
    row("patch", Always("writes the files that its input names")),
    row("fzf m4", Always("can run other programs from its input")),
    row("unzip", Judged(scripts::unzip_harms)),
    row("xxd cmp3", options("r", "-revert", WRITES)),
    row(
        "xxd",
        Operands {
            most: 1,
            valued: "-c -g -l -o -s -n -R -cols -groupsize -len -seek -name",
            why: "writes the second file that it is given",
        },
    ),
    row("tree", options("oR", "--output", WRITES)),
    row("sdiff iconv nm objdump", options("o", "--output", WRITES)),
    row("nm ar ranlib size strip", options("", "--plugin", RUNS)),
    row("diff pr", options("l", "--paginate", RUNS)),
    row(
        "date",
        // `%` begins the output format.
        valued("sf", "%", "--set --file", "change the clock or read a file"),
    ),
    row(
        "hostname domainname",
        Operands {
            most: 0,
            valued: "",
            why: "sets the name of the machine",
        },
    ),
    row("file", options("Cm", "--compile --magic-file", WRITES)),
    row(
        "man",
        valued(
            "PHXCl",
            "eEkLmMprRsS",
            "--pager --html --gxditview --config-file --local-file --browser",
            RUNS,
        ),
    ),
    row(
        "less more most",
        options(
            "oOkK",
            "--log-file --LOG-FILE --lesskey-file --lesskey-src",
            WRITES,
        ),
    ),
    row("less more", Text("+", RUNS)),
    row("bat batcat", options("", "--pager --diff-filter", RUNS)),
    row(
        "jq gojq jaq",
        options("fL", "--from-file --library-path", "run code from a file"),
    ),
    row("jq gojq jaq yq", Judged(scripts::jq_harms)),
    row(
        "yq",
        options("is", "--inplace --in-place --split-exp", WRITES),
    ),
    row("curl", Judged(scripts::curl_harms)),
    row("scp", options("oFJSDi", "", EITHER)),
    row(
        "ssh slogin rsh mosh",
        Always("runs programs on another machine"),
    ),
    row(
        "rsync",
        valued(
            "eM",
            "fBMT",
            "--remote-option --rsh --rsync-path --daemon --config --log-file --write-batch --read-batch \
            --files-from --password-file --early-input",
            EITHER,
        ),
    ),
    row(
        "zip zipcloak",
        options("TOm", "--unzip-command --test --output-file --move", EITHER),
    ),
    row("7z 7za 7zz", Text("-o -sfx", WRITES)),
    row(
        "7z 7za 7zz",
        Words("x e", "writes files with names from its input"),
    ),
    row(
        "hg",
        options(
            "R",
            "--config --config-file --repository --cwd --pager",
            RUNS,
        ),
    ),
    row(
        "svn",
        options(
            "",
            "--config-option --config-dir --diff-cmd --diff3-cmd --editor-cmd",
            RUNS,
        ),
    ),
    row(
        "pandoc",
        valued(
            "FLod",
            "ftrwMV",
            "--filter --lua-filter --output --pdf-engine --extract-media --data-dir --defaults --log",
            EITHER,
        ),
    ),
    row(
        "tex latex pdftex pdflatex xelatex lualatex xetex luatex",
        options(
            "",
            "-shell-escape -enable-write18 -output-directory -jobname -luaonly -fmt",
            EITHER,
        ),
    ),
    row(
        "cpio pax",
        options("ioIp", "--extract --rsh-command --pass-through", EITHER),
    ),
    row("cmake", Judged(languages::cmake_harms)),
    row(
        "ninja just task rake ant scons",
        options(
            "fCd",
            "--justfile --shell --set --taskfile --rakefile --directory --working-directory \
            --file",
            RUNS,
        ),
    ),
    row(
        "just",
        options(
            "c",
            "--command --shell-arg --shell-command --chooser --edit",
            RUNS,
        ),
    ),
    row(
        "rake",
        options("erERp", "--execute --require --libdir", RUNS_CODE),
    ),
    row("task", options("t", "", RUNS)),
    row("gradle gradlew mvn mvnw", Judged(builds::harms)),
    row("ps", Judged(scripts::ps_harms)),
];
