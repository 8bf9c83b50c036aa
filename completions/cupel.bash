# bash completion of cupel. Made by: cupel completion bash
_cupel()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} prefix='' fill='' words='' options='' ended='' i
    COMPREPLY=()
    # --name=value: "=" is a word of its own, unless COMP_WORDBREAKS lacks it.
    if [[ $cur == '=' ]]; then
        cur=''
    elif [[ $prev == '=' ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $cur == --*=* ]]; then
        prev=${cur%%=*} prefix=${cur%%=*}= cur=${cur#*=}
    fi
    # A command of two words has a row of its own.
    ((COMP_CWORD > 2)) && case $command in
    tasks) command="$command ${COMP_WORDS[2]}" ;;
    session) command="$command ${COMP_WORDS[2]}" ;;
    runs) command="$command ${COMP_WORDS[2]}" ;;
    mcp) command="$command ${COMP_WORDS[2]}" ;;
    token) command="$command ${COMP_WORDS[2]}" ;;
    tools) command="$command ${COMP_WORDS[2]}" ;;
    images) command="$command ${COMP_WORDS[2]}" ;;
    esac
    # After -- there are operands only.
    for ((i = 2; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] && prev='' ended=1
    done
    ((COMP_CWORD == 1)) && command=''
    case $command in
    '') fill=words words='run exec diff apply ask chat tasks session repl runs serve mcp config token tools models languages images doctor completion version help' ;;
    run)
        fill=files options='--language -l --code -c --file -f --dir --write --venv --out -o --timeout -t --memory -m --cpus --disk --pids --limit --env -e --stdin --profile --image --package --seed --cache --tools --tools-dir --mcp --secrets --approve --refuse --request --json --inline --curl --cold --record --raw --verbose -v --quiet -q --help -h'
        case $prev in
        --language | -l) options='' fill=words words='python javascript bash typescript r java' ;;
        --code | -c) options='' fill='' ;;
        --file | -f) options='' fill=files ;;
        --dir) options='' fill=folders ;;
        --venv) options='' fill=folders ;;
        --out | -o) options='' fill=folders ;;
        --timeout | -t) options='' fill='' ;;
        --memory | -m) options='' fill='' ;;
        --cpus) options='' fill='' ;;
        --disk) options='' fill='' ;;
        --pids) options='' fill='' ;;
        --limit) options='' fill='' ;;
        --env | -e) options='' fill='' ;;
        --stdin) options='' fill=files ;;
        --profile) options='' fill=words words='baseline analysis strict' ;;
        --image) options='' fill='' ;;
        --package) options='' fill='' ;;
        --seed) options='' fill='' ;;
        --cache) options='' fill='' ;;
        --tools) options='' fill='' ;;
        --tools-dir) options='' fill=folders ;;
        --mcp) options='' fill=files ;;
        --secrets) options='' fill=files ;;
        --approve) options='' fill='' ;;
        --refuse) options='' fill='' ;;
        --request) options='' fill=files ;;
        esac
        ;;
    exec)
        fill=words words='run exec diff apply ask chat tasks session repl runs serve mcp config token tools models languages images doctor completion version help' options='--dir --write --venv --image --net --file -f --env -e --timeout -t --memory -m --cpus --disk --pids --profile --quiet -q --help -h'
        case $prev in
        --dir) options='' fill=folders ;;
        --venv) options='' fill=folders ;;
        --image) options='' fill='' ;;
        --net) options='' fill='' ;;
        --file | -f) options='' fill=files ;;
        --env | -e) options='' fill='' ;;
        --timeout | -t) options='' fill='' ;;
        --memory | -m) options='' fill='' ;;
        --cpus) options='' fill='' ;;
        --disk) options='' fill='' ;;
        --pids) options='' fill='' ;;
        --profile) options='' fill=words words='baseline analysis strict' ;;
        esac
        ;;
    diff)
        fill='' options='--dir --stat --json --raw --quiet -q --help -h'
        case $prev in
        --dir) options='' fill=folders ;;
        esac
        ;;
    apply)
        fill='' options='--dir --dry-run -n --quiet -q --help -h'
        case $prev in
        --dir) options='' fill=folders ;;
        esac
        ;;
    ask)
        fill=files options='--model --planner --judge --cross-check --mode --instructions --tools --tools-dir --mcp --secrets --approve --refuse --schema --show --json --out -o --budget --max-steps --timeout -t --memory -m --profile --image --continue --why --yes --quiet -q --help -h'
        case $prev in
        --model) options='' fill='' ;;
        --planner) options='' fill='' ;;
        --judge) options='' fill='' ;;
        --mode) options='' fill=words words='code tools' ;;
        --instructions) options='' fill=files ;;
        --tools) options='' fill='' ;;
        --tools-dir) options='' fill=folders ;;
        --mcp) options='' fill=files ;;
        --secrets) options='' fill=files ;;
        --approve) options='' fill='' ;;
        --refuse) options='' fill='' ;;
        --schema) options='' fill=files ;;
        --show) options='' fill='' ;;
        --out | -o) options='' fill=folders ;;
        --budget) options='' fill='' ;;
        --max-steps) options='' fill='' ;;
        --timeout | -t) options='' fill='' ;;
        --memory | -m) options='' fill='' ;;
        --profile) options='' fill=words words='baseline analysis strict' ;;
        --image) options='' fill='' ;;
        --continue) options='' fill='' ;;
        esac
        ;;
    chat)
        fill=files options='--model --planner --judge --cross-check --mode --instructions --tools --tools-dir --mcp --secrets --approve --refuse --out -o --budget --max-steps --timeout -t --memory -m --profile --image --continue --why --yes --quiet -q --help -h'
        case $prev in
        --model) options='' fill='' ;;
        --planner) options='' fill='' ;;
        --judge) options='' fill='' ;;
        --mode) options='' fill=words words='code tools' ;;
        --instructions) options='' fill=files ;;
        --tools) options='' fill='' ;;
        --tools-dir) options='' fill=folders ;;
        --mcp) options='' fill=files ;;
        --secrets) options='' fill=files ;;
        --approve) options='' fill='' ;;
        --refuse) options='' fill='' ;;
        --out | -o) options='' fill=folders ;;
        --budget) options='' fill='' ;;
        --max-steps) options='' fill='' ;;
        --timeout | -t) options='' fill='' ;;
        --memory | -m) options='' fill='' ;;
        --profile) options='' fill=words words='baseline analysis strict' ;;
        --image) options='' fill='' ;;
        --continue) options='' fill='' ;;
        esac
        ;;
    tasks)
        fill=words words='ls show resume replay export rm' options='--help -h'
        ;;
    'tasks ls')
        fill='' options='--status --token --limit -n --all -a --json --quiet -q --help -h'
        case $prev in
        --status) options='' fill='' ;;
        --token) options='' fill='' ;;
        --limit | -n) options='' fill='' ;;
        esac
        ;;
    'tasks show')
        fill='' options='--why --json --quiet -q --help -h'
        ;;
    'tasks resume')
        fill='' options='--model --budget --max-steps --out -o --why --yes -y --approve --refuse --json --quiet -q --help -h'
        case $prev in
        --model) options='' fill='' ;;
        --budget) options='' fill='' ;;
        --max-steps) options='' fill='' ;;
        --out | -o) options='' fill=folders ;;
        --approve) options='' fill='' ;;
        --refuse) options='' fill='' ;;
        esac
        ;;
    'tasks replay')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'tasks export')
        fill='' options='--as --out -o --json --quiet -q --help -h'
        case $prev in
        --as) options='' fill='' ;;
        --out | -o) options='' fill=files ;;
        esac
        ;;
    'tasks rm')
        fill='' options='--yes -y --json --quiet -q --help -h'
        ;;
    session)
        fill=words words='new run ls info put get files interrupt checkpoint undo fork rm' options='--help -h'
        ;;
    'session new')
        fill='' options='--language -l --ttl --life --undo-levels --file -f --timeout -t --memory -m --cpus --disk --pids --env -e --profile --image --seed --tools --json --quiet -q --help -h'
        case $prev in
        --language | -l) options='' fill=words words='python javascript bash typescript r java' ;;
        --ttl) options='' fill='' ;;
        --life) options='' fill='' ;;
        --undo-levels) options='' fill='' ;;
        --file | -f) options='' fill=files ;;
        --timeout | -t) options='' fill='' ;;
        --memory | -m) options='' fill='' ;;
        --cpus) options='' fill='' ;;
        --disk) options='' fill='' ;;
        --pids) options='' fill='' ;;
        --env | -e) options='' fill='' ;;
        --profile) options='' fill=words words='baseline analysis strict' ;;
        --image) options='' fill='' ;;
        --seed) options='' fill='' ;;
        --tools) options='' fill='' ;;
        esac
        ;;
    'session run')
        fill=files options='--code -c --file -f --out -o --timeout -t --env -e --stdin --approve --refuse --on-error --names --json --raw --verbose -v --quiet -q --help -h'
        case $prev in
        --code | -c) options='' fill='' ;;
        --file | -f) options='' fill=files ;;
        --out | -o) options='' fill=folders ;;
        --timeout | -t) options='' fill='' ;;
        --env | -e) options='' fill='' ;;
        --stdin) options='' fill=files ;;
        --approve) options='' fill='' ;;
        --refuse) options='' fill='' ;;
        --on-error) options='' fill=words words='keep rollback' ;;
        esac
        ;;
    'session ls')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'session info')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'session put')
        fill=files options='--to --json --quiet -q --help -h'
        case $prev in
        --to) options='' fill=files ;;
        esac
        ;;
    'session get')
        fill='' options='--out -o --json --quiet -q --help -h'
        case $prev in
        --out | -o) options='' fill=files ;;
        esac
        ;;
    'session files')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'session interrupt')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'session checkpoint')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'session undo')
        fill='' options='--to --json --quiet -q --help -h'
        case $prev in
        --to) options='' fill='' ;;
        esac
        ;;
    'session fork')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'session rm')
        fill='' options='--json --quiet -q --help -h'
        ;;
    repl)
        fill='' options='--language -l --file -f --dir --write --out -o --timeout -t --memory -m --cpus --disk --pids --env -e --profile --image --seed --tools --tools-dir --mcp --secrets --approve --refuse --raw --verbose -v --quiet -q --help -h'
        case $prev in
        --language | -l) options='' fill=words words='python javascript bash typescript r java' ;;
        --file | -f) options='' fill=files ;;
        --dir) options='' fill=folders ;;
        --out | -o) options='' fill=folders ;;
        --timeout | -t) options='' fill='' ;;
        --memory | -m) options='' fill='' ;;
        --cpus) options='' fill='' ;;
        --disk) options='' fill='' ;;
        --pids) options='' fill='' ;;
        --env | -e) options='' fill='' ;;
        --profile) options='' fill=words words='baseline analysis strict' ;;
        --image) options='' fill='' ;;
        --seed) options='' fill='' ;;
        --tools) options='' fill='' ;;
        --tools-dir) options='' fill=folders ;;
        --mcp) options='' fill=files ;;
        --secrets) options='' fill=files ;;
        --approve) options='' fill='' ;;
        --refuse) options='' fill='' ;;
        esac
        ;;
    runs)
        fill=words words='ls show log artifacts stats export replay diff pin unpin rm' options='--help -h'
        ;;
    'runs ls')
        fill='' options='--status --language -l --session --task --token --since --until --text --code-hash --limit -n --all -a --json --quiet -q --help -h'
        case $prev in
        --status) options='' fill='' ;;
        --language | -l) options='' fill=words words='python javascript bash typescript r java' ;;
        --session) options='' fill='' ;;
        --task) options='' fill='' ;;
        --token) options='' fill='' ;;
        --since) options='' fill='' ;;
        --until) options='' fill='' ;;
        --text) options='' fill='' ;;
        --code-hash) options='' fill='' ;;
        --limit | -n) options='' fill='' ;;
        esac
        ;;
    'runs show')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'runs log')
        fill='' options='--stderr --raw --json --quiet -q --help -h'
        ;;
    'runs artifacts')
        fill='' options='--out -o --json --quiet -q --help -h'
        case $prev in
        --out | -o) options='' fill=folders ;;
        esac
        ;;
    'runs stats')
        fill='' options='--since --until --token --json --quiet -q --help -h'
        case $prev in
        --since) options='' fill='' ;;
        --until) options='' fill='' ;;
        --token) options='' fill='' ;;
        esac
        ;;
    'runs export')
        fill='' options='--as --out -o --json --quiet -q --help -h'
        case $prev in
        --as) options='' fill='' ;;
        --out | -o) options='' fill=files ;;
        esac
        ;;
    'runs replay')
        fill='' options='--any-image --secret --json --quiet -q --help -h'
        case $prev in
        --secret) options='' fill='' ;;
        esac
        ;;
    'runs diff')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'runs pin')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'runs unpin')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'runs rm')
        fill='' options='--before --status --yes -y --json --quiet -q --help -h'
        case $prev in
        --before) options='' fill='' ;;
        --status) options='' fill='' ;;
        esac
        ;;
    serve)
        fill='' options='--socket --listen --tls-cert --tls-key --host --origin --insecure-http --config --fd --runs --queue --pool --tools-dir --mcp --secrets --dir --write --no-records --durable --idle-exit --status --stop --json --quiet -q --help -h'
        case $prev in
        --socket) options='' fill=files ;;
        --listen) options='' fill='' ;;
        --tls-cert) options='' fill=files ;;
        --tls-key) options='' fill=files ;;
        --host) options='' fill='' ;;
        --origin) options='' fill='' ;;
        --config) options='' fill=files ;;
        --fd) options='' fill='' ;;
        --runs) options='' fill='' ;;
        --queue) options='' fill='' ;;
        --pool) options='' fill='' ;;
        --tools-dir) options='' fill=folders ;;
        --mcp) options='' fill=files ;;
        --secrets) options='' fill=files ;;
        --dir) options='' fill=folders ;;
        --idle-exit) options='' fill='' ;;
        esac
        ;;
    mcp)
        fill=words words='config' options='--timeout --quiet -q --help -h'
        case $prev in
        --timeout) options='' fill='' ;;
        esac
        ;;
    'mcp config')
        fill='' options='--write --file --quiet -q --help -h'
        case $prev in
        --file) options='' fill=files ;;
        esac
        ;;
    config)
        fill=words words='listen insecure_http hosts origins tls.cert tls.key socket state runs queue pool profile image model judge planner models retention.files_s retention.blobs_s redact retention.records_s retention.records_bytes tools.folder tools.mcp tools.secrets records durable cache.ttl_s images.registry log images.builds images.packages images.pinned images.hashes http.connections http.connections_per_address http.header_bytes http.body_bytes http.bodies_bytes http.upload_bytes http.head_s http.body_bytes_a_second http.body_s http.idle_s http.ping_s http.events_bytes http.kept_bytes http.kept_runs http.tasks http.kept_tasks http.task_idle_s http.task_ask_s ceilings.timeout_s ceilings.cpu_s ceilings.memory_bytes ceilings.disk_bytes ceilings.pids ceilings.cpus ceilings.input_bytes ceilings.stdout_bytes ceilings.stderr_bytes ceilings.artifact_bytes ceilings.artifact_files' options='--check --config --json --quiet -q --help -h'
        case $prev in
        --check) options='' fill=files ;;
        --config) options='' fill=files ;;
        esac
        ;;
    token)
        fill=words words='new ls rm' options='--help -h'
        ;;
    'token new')
        fill='' options='--expires --operator --runs --rate --cpu-s-a-day --sessions --stored --limit --profile --image --tool --json --quiet -q --help -h'
        case $prev in
        --expires) options='' fill='' ;;
        --runs) options='' fill='' ;;
        --rate) options='' fill='' ;;
        --cpu-s-a-day) options='' fill='' ;;
        --sessions) options='' fill='' ;;
        --stored) options='' fill='' ;;
        --limit) options='' fill='' ;;
        --profile) options='' fill=words words='baseline analysis strict' ;;
        --image) options='' fill='' ;;
        --tool) options='' fill='' ;;
        esac
        ;;
    'token ls')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'token rm')
        fill='' options='--json --quiet -q --help -h'
        ;;
    tools)
        fill=words words='ls show call check' options='--help -h'
        ;;
    'tools ls')
        fill='' options='--tools-dir --mcp --secrets --json --quiet -q --help -h'
        case $prev in
        --tools-dir) options='' fill=folders ;;
        --mcp) options='' fill=files ;;
        --secrets) options='' fill=files ;;
        esac
        ;;
    'tools show')
        fill='' options='--tools-dir --mcp --secrets --json --quiet -q --help -h'
        case $prev in
        --tools-dir) options='' fill=folders ;;
        --mcp) options='' fill=files ;;
        --secrets) options='' fill=files ;;
        esac
        ;;
    'tools call')
        fill='' options='--yes -y --timeout -t --tools-dir --mcp --secrets --json --quiet -q --help -h'
        case $prev in
        --timeout | -t) options='' fill='' ;;
        --tools-dir) options='' fill=folders ;;
        --mcp) options='' fill=files ;;
        --secrets) options='' fill=files ;;
        esac
        ;;
    'tools check')
        fill='' options='--tools-dir --mcp --secrets --json --quiet -q --help -h'
        case $prev in
        --tools-dir) options='' fill=folders ;;
        --mcp) options='' fill=files ;;
        --secrets) options='' fill=files ;;
        esac
        ;;
    models)
        fill='' options='--probe --json --quiet -q --help -h'
        ;;
    languages)
        fill='' options='--json --quiet -q --help -h'
        ;;
    images)
        fill=words words='ls show add build lock pull import export rm prune du verify extras' options='--json --quiet -q --help -h'
        ;;
    'images ls')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'images show')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'images add')
        fill='' options='--pip --requirements -r --npm --apt --from --lock --timeout -t --verbose -v --json --quiet -q --help -h'
        case $prev in
        --pip) options='' fill='' ;;
        --requirements | -r) options='' fill=files ;;
        --npm) options='' fill='' ;;
        --apt) options='' fill='' ;;
        --from) options='' fill='' ;;
        --lock) options='' fill=files ;;
        --timeout | -t) options='' fill='' ;;
        esac
        ;;
    'images build')
        fill='' options='--debian --apt --mirror --timeout -t --verbose -v --json --quiet -q --help -h'
        case $prev in
        --debian) options='' fill='' ;;
        --apt) options='' fill='' ;;
        --mirror) options='' fill='' ;;
        --timeout | -t) options='' fill='' ;;
        esac
        ;;
    'images lock')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'images pull')
        fill='' options='--name --tls-ca --plain-http --max-size --idle-timeout --json --quiet -q --help -h'
        case $prev in
        --name) options='' fill='' ;;
        --tls-ca) options='' fill=files ;;
        --max-size) options='' fill='' ;;
        --idle-timeout) options='' fill='' ;;
        esac
        ;;
    'images import')
        fill=files options='--name --ref --max-size --json --quiet -q --help -h'
        case $prev in
        --name) options='' fill='' ;;
        --ref) options='' fill='' ;;
        --max-size) options='' fill='' ;;
        esac
        ;;
    'images export')
        fill='' options='--output -o --added --json --quiet -q --help -h'
        case $prev in
        --output | -o) options='' fill=files ;;
        esac
        ;;
    'images rm')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'images prune')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'images du')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'images verify')
        fill='' options='--json --quiet -q --help -h'
        ;;
    'images extras')
        fill='' options='--json --quiet -q --help -h'
        ;;
    doctor)
        fill='' options='--json --quiet -q --help -h'
        ;;
    completion)
        fill=words words='bash zsh fish' options='--help -h'
        ;;
    version)
        fill=''
        ;;
    help)
        fill=words words='run exec diff apply ask chat tasks session repl runs serve mcp config token tools models languages images doctor completion version help'
        ;;
    esac
    [[ $options && ! $ended && $cur == -* ]] && fill=words words=$options
    case $fill in
    words) mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$words" -- "$cur") ;;
    files) compopt -o default 2>/dev/null ;;
    folders) compopt -o dirnames 2>/dev/null ;;
    esac
}
complete -F _cupel cupel
