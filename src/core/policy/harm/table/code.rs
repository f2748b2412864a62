//! Languages, build tools, package managers, and virtual machines and containers.

use super::Danger::{Beyond, Judged, Text, Words};
use super::{Danger, EITHER, RUNS, RUNS_CODE, Row, abbreviated, options, row, valued};
use crate::core::policy::harm::{containers, javascript, languages, scripts, subcommands};

pub const TABLE: &[Row] = &[
    // Languages.
    row(
        "python python2 python3 pypy pypy3",
        valued("ci", "mWX", "", RUNS_CODE),
    ),
    row(
        "python python2 python3 pypy pypy3",
        Judged(languages::python_harms),
    ),
    row(
        "perl ruby node nodejs php lua luajit julia Rscript R octave guile racket sbcl swift ocaml scala \
            groovy elixir erl tclsh deno bun raku tsx ts-node",
        Judged(languages::input_harms),
    ),
    row(
        "python python3 perl ruby node php lua deno bun",
        Words("-", "runs what it reads"),
    ),
    row(
        "python python2 python3 pypy pypy3 perl ruby node nodejs php lua luajit julia Rscript R octave guile racket \
            sbcl swift ocaml scala groovy elixir erl tclsh deno bun raku tsx ts-node osascript crystal nim java",
        Judged(languages::open_file_harms),
    ),
    row("perl", Judged(scripts::perl_harms)),
    row("perl", valued("eEidMmIx", "F", "", RUNS_CODE)),
    row("ruby", valued("erIiSxC", "EFKT", "--require", RUNS_CODE)),
    row("node nodejs tsx ts-node", Judged(javascript::node_harms)),
    row(
        "deno",
        Danger::Subcommands("eval repl install task", "runs or installs other code"),
    ),
    row(
        "deno",
        options(
            "A",
            "--allow-all --allow-run --allow-ffi --allow-write --config --import-map --preload --require",
            RUNS_CODE,
        ),
    ),
    row("deno", Text("://", "run code from elsewhere")),
    row(
        "bun",
        options("eprc", "--eval --print --preload --config", RUNS_CODE),
    ),
    row(
        "bun",
        Danger::Subcommands("x create repl exec", "runs other programs"),
    ),
    row(
        "php",
        options(
            "rBREFdczaS",
            "--run --process-code --process-file --define --php-ini",
            RUNS_CODE,
        ),
    ),
    row("lua luajit", options("eli", "", RUNS_CODE)),
    row(
        "osascript Rscript julia groovy scala R octave guile racket sbcl swift ghc clojure clj elixir erl \
            crystal nim raku kotlinc",
        options("ceELfs", "--eval --print --load -eval -script", RUNS_CODE),
    ),
    row(
        "java",
        Text(
            "-agent -javaagent -XX:OnError -XX:OnOutOfMemoryError -Xrun @",
            RUNS,
        ),
    ),
    // Build tools and package managers.
    row("npx bunx uvx pnpx", Judged(scripts::runner_harms)),
    row("npm pnpm yarn", Judged(javascript::package_harms)),
    row("npm", Judged(javascript::manifest_harms)),
    row(
        "npm",
        abbreviated(
            "exec x explore config c set edit init innit create publish unpublish login adduser add-user logout \
                token access owner author deprecate undeprecate dist-tag dist-tags hook profile team org ogr \
                link ln pack",
            "i in s se t un add",
        ),
    ),
    row(
        "pnpm yarn",
        Danger::Subcommands(
            "exec x dlx explore config set edit init create pkg node plugin patch global publish unpublish \
                login adduser logout token access owner deprecate dist-tag hook profile team org link ln c pack setup \
                self-update runtime env server",
            "runs other programs, publishes, or changes what will be run",
        ),
    ),
    row(
        "pip pip3 pipx uv poetry pipenv conda",
        Danger::Subcommands(
            "run exec config shell tool publish",
            "runs other programs or changes what will be run",
        ),
    ),
    row(
        "bundle",
        abbreviated("exec config console plugin open", "c"),
    ),
    row(
        "gem",
        abbreviated(
            "exec push config console owner yank sources signin open cert",
            "",
        ),
    ),
    row("cargo", Judged(languages::cargo_harms)),
    row("rustup", Beyond(&subcommands::RUSTUP)),
    row("rustup", Text("+", "use another toolchain")),
    row("go", Judged(languages::go_harms)),
    row(
        "go",
        Danger::Subcommands(
            "generate install",
            "runs other programs or changes what will be run",
        ),
    ),
    row(
        "gcc cc g++ c++ clang clang++ rustc tsc ld as",
        options(
            "BCZ",
            "-wrapper -specs --specs --outFile --outDir --project --codegen",
            EITHER,
        ),
    ),
    row(
        "gcc cc g++ c++ clang clang++",
        Text(
            "@ -fplugin -fuse-ld -Wl, -Wa, -Wp, -Xlinker -Xclang -load -save-temps -MF",
            EITHER,
        ),
    ),
    row(
        "openssl",
        options(
            "",
            "-out -keyout -engine -config -provider-path -writerand -CAserial -CAcreateserial -reqout -respout \
                -sess_out -keylogfile -certsout -outdir",
            EITHER,
        ),
    ),
    row(
        "openssl",
        Danger::Subcommands(
            "engine s_client s_server s_time rehash",
            "loads code, talks to other machines, or writes files",
        ),
    ),
    row(
        "gpg gpg2",
        options(
            "o",
            "--output --exec-path --photo-viewer --options --homedir --agent-program \
            --export-secret-keys --export-secret-subkeys",
            EITHER,
        ),
    ),
    // Virtual machines and containers.
    row("docker podman nerdctl", Beyond(&subcommands::DOCKER)),
    row(
        "docker podman nerdctl docker-compose podman-compose",
        Judged(containers::harms),
    ),
    row("docker podman nerdctl", Judged(containers::output_harms)),
    row("docker-compose", Beyond(&subcommands::DOCKER_COMPOSE)),
    row(
        "podman",
        options(
            "",
            "--runtime --runtime-flag --conmon --hooks-dir --network-cmd-path --module --root --runroot --url \
                --connection --identity",
            "work on another machine or run another program",
        ),
    ),
    row(
        "kubectl",
        options(
            "",
            "--context --config --host --kubeconfig",
            "work on another machine or run another program",
        ),
    ),
    row(
        "docker podman helm",
        options(
            "cH",
            "--context --config --host --kubeconfig --post-renderer",
            "work on another machine or run another program",
        ),
    ),
    row("kubectl", Beyond(&subcommands::KUBECTL)),
    row(
        "kubectl",
        valued(
            "s",
            "nlofvLckp",
            "--server --helm-command --enable-helm --enable-exec --enable-alpha-plugins --edit",
            RUNS,
        ),
    ),
    row("helm", Beyond(&subcommands::HELM)),
    row("coverage", Judged(languages::coverage_harms)),
    row("pnpm", Judged(javascript::pnpm_harms)),
    row("npm pnpm yarn", Judged(javascript::source_harms)),
    row("vitest", Judged(javascript::vitest_harms)),
    row("gh", Beyond(&subcommands::GH)),
    row("gh", Judged(scripts::gh_harms)),
    row("terraform tofu", options("", "-plugin-dir -chdir", RUNS)),
    row("ip", abbreviated("netns vrf", "n ne")),
    row("ip", options("", "-b -ba -bat -batc -batch", RUNS)),
    row("systemctl", Beyond(&subcommands::SYSTEMCTL)),
    row(
        "systemctl",
        options("HM", "--host --machine --root --image", RUNS),
    ),
    row(
        "journalctl",
        Text(
            "--vacuum --rotate --flush --relinquish --update",
            "change the log",
        ),
    ),
    row(
        "pip pip3",
        valued(
            "te",
            "rcifCdw",
            "--target --prefix --root --log --python --editable",
            EITHER,
        ),
    ),
];
