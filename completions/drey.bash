# Completion of drey for bash.

_drey() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]-} kind=${COMP_WORDS[2]-} words=""
    local engine="-m --model --memory -t --threads --cpu --io --kv --read-size --sidecar --prompt-chunk -h --help"
    local drafting="-d --draft -c --context --policy --without --with --draft-tokens --tree --exit --exit-file --exit-threshold --units"
    COMPREPLY=()

    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W \
            "run chat serve prepare plan inspect tokenize perplexity report train tune bench --help --version" -- "$cur")
        return
    fi
    if ((COMP_CWORD == 2)) && [[ $command == train ]]; then
        mapfile -t COMPREPLY < <(compgen -W "exit medusa --help" -- "$cur")
        return
    fi
    if ((COMP_CWORD == 2)) && [[ $command == bench ]]; then
        mapfile -t COMPREPLY < <(compgen -W "machine disk kernels model --help" -- "$cur")
        return
    fi

    case $prev in
    -m | --model | -f | --file | --stats | --trace | --json | --prompts | --exit-file | -o | --output)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --prefix-folder)
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    -d | --draft)
        mapfile -t COMPREPLY < <(compgen -f -W "auto lookup self medusa none" -- "$cur")
        return
        ;;
    --sidecar)
        mapfile -t COMPREPLY < <(compgen -f -W "none" -- "$cur")
        return
        ;;
    --memory) words="auto unlimited" ;;
    --policy) words="auto none sequence specinfer llmcad edgellm optimal bld draft std single static" ;;
    --without) words="tree fallback batching provisional slice schedule predictors hyper lookup" ;;
    --with) words="lookup" ;;
    --exit) words="off fast exact" ;;
    --features) words="all plain" ;;
    --io) words="auto uring pread buffered" ;;
    --kv) words="f16 q8_0" ;;
    --read-size) words="256K 512K 1M 2M 4M" ;;
    --units) words="cpu auto" ;;
    --cpu) words="amx avx512 avxvnni avx2 i8mm dotprod neon ref float" ;;
    -p | --prompt | -n | --predict | -c | --context | -t | --threads | --system | --stop | \
        --temp | --top-k | --top-p | --min-p | --seed | --draft-tokens | --tree | --disk | \
        --prompt-chunk | --window | --unscored | --prompt-tokens | --decode-tokens | --contexts | --type | \
        --host | --port | --alias | --api-key | --cors-origin | --sessions | --queue | --connections | --max-body | \
        --prefix-memory | --prefix-disk | --timeout | --grace | --turn | --turns | --hidden | --exit-threshold) return ;;
    esac

    if [[ -z $words ]]; then
        case $command in
        run)
            words="$engine $drafting -p --prompt -f --file -n --predict --chat --system --special
                --temp --top-k --top-p --min-p --seed --stop --ignore-eos --raw-ids --no-provisional-text --stats --trace
                -q --quiet"
            ;;
        chat)
            words="$engine $drafting -n --predict --system --stop --temp --top-k --top-p --min-p --seed
                --prefix-memory --prefix-folder --prefix-disk --no-provisional-text -q --quiet"
            ;;
        serve)
            words="$engine $drafting --host --port --alias --api-key --cors-origin --sessions --queue --connections
                --max-body --timeout --grace --prefix-memory --prefix-folder --prefix-disk -n --predict --temp --top-k --top-p --min-p --seed -q --quiet"
            ;;
        plan) words="$engine $drafting --disk --no-measure --tensors --sessions --json" ;;
        report)
            mapfile -t COMPREPLY < <(compgen -f -W "-o --output --turn --turns -h --help" -- "$cur")
            return
            ;;
        train)
            words="$engine -d --draft -o --output --prompts -n --predict --features --hidden --exit-threshold --seed
                --heads --vocabulary --epochs --rate --temp --keep-texts --json -q --quiet"
            ;;
        tune)
            words="-m --model -d --draft --memory --io --kv --sidecar --prompts -t --threads --cpu
                --units -c --context --show --json -q --quiet -h --help"
            ;;
        tokenize) words="-m --model --special --bos --ids -h --help" ;;
        perplexity) words="$engine -f --file --window --unscored -q --quiet" ;;
        inspect)
            mapfile -t COMPREPLY < <(compgen -f -W "-h --help" -- "$cur")
            return
            ;;
        prepare)
            mapfile -t COMPREPLY < <(compgen -f -W "-o --output --check --force --planes --json -q --quiet -h --help" \
                -- "$cur")
            return
            ;;
        bench)
            case $kind in
            machine) words="-m --model --io -t --threads --cpu --json -h --help" ;;
            kernels) words="-t --threads --cpu --type --list --json -h --help" ;;
            disk) words="-m --model --io --read-size --sizes --seconds --json -h --help" ;;
            model)
                words="$engine --units --prompt-tokens --decode-tokens --contexts --sessions --every --json"
                ;;
            esac
            ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -o filenames -F _drey drey
