# Completion of drey for fish.

complete -c drey -f

function __drey_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and contains -- $words[2] $argv
end

complete -c drey -n __fish_use_subcommand -l version -d 'Show the version'
complete -c drey -n __fish_use_subcommand -a run -d 'Write on from a prompt'
complete -c drey -n __fish_use_subcommand -a prepare -d 'Pack the weights once'
complete -c drey -n __fish_use_subcommand -a plan -d 'What a memory budget would keep'
complete -c drey -n __fish_use_subcommand -a inspect -d 'What is in a GGUF file'
complete -c drey -n __fish_use_subcommand -a tokenize -d 'Text to token ids, and back'
complete -c drey -n __fish_use_subcommand -a perplexity -d 'Score a text'
complete -c drey -n __fish_use_subcommand -a report -d 'Draw a trace'
complete -c drey -n __fish_use_subcommand -a train -d 'Learn when tokens may leave early'
complete -c drey -n __fish_use_subcommand -a tune -d 'Find the fastest kernels'
complete -c drey -n __fish_use_subcommand -a bench -d 'Measure machine, disk, kernels or model'
complete -c drey -n '__drey_is train' -a exit
complete -c drey -n '__drey_is bench' -a 'machine disk kernels model edge'
complete -c drey -s h -l help -d 'Show the options'
complete -c drey -n '__drey_is inspect prepare report' -F

set -l engine '__drey_is run plan perplexity train bench'
set -l cores '__drey_is run plan perplexity train tune bench'
complete -c drey -n '__drey_is run plan tokenize perplexity train tune bench' -s m -l model -r -F -d 'Model file'
complete -c drey -n $engine -l memory -x -a 'auto unlimited' -d 'Bound on memory'
complete -c drey -n $cores -s t -l threads -x -d Threads
complete -c drey -n $cores -l cpu -x -a 'amx avx512 avxvnni avx2 i8mm dotprod neon ref float' -d Kernels
complete -c drey -n $engine -l kv -x -a 'f16 q8_0' -d 'Numbers of the KV cache'
complete -c drey -n $engine -l io -x -a 'auto uring pread buffered' -d 'How to read'
complete -c drey -n $engine -l read-size -x -a '256K 512K 1M 2M 4M' -d 'Size of a streamed read'
complete -c drey -n $engine -l sidecar -r -F -a none -d 'Packed weights'
complete -c drey -n $engine -l prompt-chunk -x -d 'Rows of a prompt pass'

set -l drafting '__drey_is run plan'
complete -c drey -n $drafting -s d -l draft -r -F -a 'auto lookup self medusa none' -d 'What guesses ahead'
complete -c drey -n $drafting -s c -l context -x -d 'Tokens of prompt and text'
complete -c drey -n $drafting -l policy -x -a 'auto none sequence specinfer llmcad edgellm optimal bld draft std' \
    -d 'How to draft'
complete -c drey -n $drafting -l without -x -a 'tree fallback batching provisional slice' \
    -d 'What to draft without'
complete -c drey -n $drafting -l draft-tokens -x -d 'Length of a chain'
complete -c drey -n $drafting -l tree -x -d 'Most nodes of a tree'

complete -c drey -n '__drey_is run' -s p -l prompt -x -d Prompt
complete -c drey -n '__drey_is run perplexity' -s f -l file -r -F -d 'Prompt or text file'
complete -c drey -n '__drey_is run train' -s n -l predict -x -d 'Most tokens to write'
complete -c drey -n '__drey_is run' -l chat -d 'One turn of a chat'
complete -c drey -n '__drey_is run' -l system -x -d 'Text before the turn'
complete -c drey -n '__drey_is run tokenize' -l special -d 'Special tokens count as such'
complete -c drey -n '__drey_is run bench' -l temp -x -d Temperature
complete -c drey -n '__drey_is run bench' -l top-k -x -d 'Among the k most likely'
complete -c drey -n '__drey_is run bench' -l top-p -x -d 'Among those that make up p'
complete -c drey -n '__drey_is run bench' -l min-p -x -d 'At least p times the best'
complete -c drey -n '__drey_is run train bench' -l seed -x -d 'One seed, one text'
complete -c drey -n '__drey_is run' -l stop -x -d 'Text that ends it'
complete -c drey -n '__drey_is run' -l ignore-eos -d 'Go on past the end'
complete -c drey -n '__drey_is run' -l raw-ids -d 'Token ids instead of text'
complete -c drey -n '__drey_is run' -l no-provisional-text -d 'Text only once it is verified'
complete -c drey -n '__drey_is run' -l stats -r -F -d 'Statistics file'
complete -c drey -n '__drey_is run' -l trace -r -F -d 'What ran when'
complete -c drey -n '__drey_is train' -s d -l draft -r -F -a 'lookup none' -d 'Who names candidates'
complete -c drey -n '__drey_is train' -l features -x -a 'all plain confidence' -d 'What predictors look at'
complete -c drey -n '__drey_is train' -l hidden -x -d 'Hidden units'
complete -c drey -n '__drey_is train' -l exit-threshold -x -d 'What a score has to exceed'
complete -c drey -n '__drey_is train bench tune' -l prompts -r -F -d 'Prompts, one a line'
complete -c drey -n '__drey_is bench' -l policies -x -d 'Policies to compare'
complete -c drey -n '__drey_is bench' -l rounds -x -d 'How often'
complete -c drey -n '__drey_is bench' -l plain-tokens -x -d 'Tokens without a draft'
complete -c drey -n '__drey_is bench' -l csv -r -F -d 'Keep each result'
complete -c drey -n '__drey_is report' -l turn -x -d 'Whose tree to draw'
complete -c drey -n '__drey_is report' -l turns -x -d 'Turns to draw'
complete -c drey -n '__drey_is prepare report train' -s o -l output -r -F -d 'Where to write'
complete -c drey -n '__drey_is prepare' -l check -d 'Compare all of it'
complete -c drey -n '__drey_is prepare' -l planes -d 'High and low bits apart, for -d self'
complete -c drey -n '__drey_is prepare' -l force -d 'Write again'
complete -c drey -n '__drey_is run perplexity prepare train tune' -s q -l quiet -d 'No progress'

complete -c drey -n '__drey_is plan' -l disk -x -d 'Speed of the disk'
complete -c drey -n '__drey_is plan' -l no-measure -d 'Measure nothing'
complete -c drey -n '__drey_is plan' -l tensors -d 'List each tensor'
complete -c drey -n '__drey_is plan bench' -l sessions -x -d 'Texts that go on at the same time'
complete -c drey -n '__drey_is tokenize' -l bos -d 'Begin with BOS'
complete -c drey -n '__drey_is tokenize' -l ids -d 'Ids to text'
complete -c drey -n '__drey_is perplexity' -l window -x -d 'Tokens of a window'
complete -c drey -n '__drey_is perplexity' -l unscored -x -d 'Of them in front, only read'
complete -c drey -n '__drey_is bench' -l prompt-tokens -x -d 'Length of the prompt'
complete -c drey -n '__drey_is bench' -l decode-tokens -x -d 'Length of the text'
complete -c drey -n '__drey_is bench plan prepare train tune' -l json -r -F -d 'Numbers as JSON'
complete -c drey -n '__drey_is bench' -l contexts -x -d 'Positions before a pass'
complete -c drey -n '__drey_is bench' -l every -d 'Passes of every width'
complete -c drey -n '__drey_is bench tune' -l svg -r -F -d 'Picture of the passes'
complete -c drey -n '__drey_is bench' -l sizes -d 'Reads of several sizes'
complete -c drey -n '__drey_is bench' -l seconds -x -d 'How long to read'
complete -c drey -n '__drey_is bench' -l type -x -d 'One type or row operation'
complete -c drey -n '__drey_is bench' -l list -d 'Which type has which kernel'
complete -c drey -n '__drey_is tune' -l show -d 'What is in use'
complete -c drey -n '__drey_is tune' -s d -l draft -r -F -a 'auto lookup self none' -d 'What guesses ahead'
complete -c drey -n '__drey_is tune' -l memory -x -a 'auto unlimited' -d 'Bound on memory'
complete -c drey -n '__drey_is tune' -l io -x -a 'auto uring pread buffered' -d 'How to read'
complete -c drey -n '__drey_is tune' -l kv -x -a 'f16 q8_0' -d 'Numbers of the KV cache'
complete -c drey -n '__drey_is tune' -l sidecar -r -F -a none -d 'Packed weights'
complete -c drey -n '__drey_is tune' -l simulate -r -F -d 'A machine that is not here'
