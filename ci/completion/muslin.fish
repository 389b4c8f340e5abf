# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of muslin(1) for fish.
function __muslin_hosts
    set -l name default
    set -q MUSLIN_NAME; and set name $MUSLIN_NAME
    set -l words (commandline -opc)
    set -l at (contains -i -- --name $words); and set name $words[(math $at + 1)]
    set -l base /tmp/muslin-(id -u)
    set -q XDG_RUNTIME_DIR; and set base $XDG_RUNTIME_DIR/muslin
    set -q MUSLIN_RUNDIR; and set base $MUSLIN_RUNDIR
    test -r $base/$name/tree/addresses; and string split -f1 ' ' <$base/$name/tree/addresses | sort -u
end

set -l commands up down run env cdi vm cp show trace link mode partitions fault top metrics timeline console log list help version
complete -c muslin -f
complete -c muslin -n "not __fish_seen_subcommand_from $commands" -a "$commands"
complete -c muslin -l name -x -d fabric -a "(muslin list 2>/dev/null | string split -f1 ' ')"
complete -c muslin -n "__fish_seen_subcommand_from run env vm cp show trace link mode fault metrics" -a "(__muslin_hosts)"
complete -c muslin -n "__fish_seen_subcommand_from fault" -a "add list clear"
complete -c muslin -n "__fish_seen_subcommand_from fault; and __fish_seen_subcommand_from clear" -a all
complete -c muslin -n "__fish_seen_subcommand_from link" -a "up down"
complete -c muslin -n "__fish_seen_subcommand_from env" -l json
complete -c muslin -n "__fish_seen_subcommand_from show" -l json -l counters -l topology -l svg
complete -c muslin -n "__fish_seen_subcommand_from fault; and __fish_seen_subcommand_from list" -l json
complete -c muslin -n "__fish_seen_subcommand_from cdi" -s w -r -d file
set -l trace "__fish_seen_subcommand_from trace"
complete -c muslin -n $trace -s w -r -d file
complete -c muslin -n $trace -s C -x -d "megabytes of each file"
complete -c muslin -n $trace -s W -x -d "files that are kept"
complete -c muslin -n $trace -s c -x -d packets
complete -c muslin -n $trace -l duration -x -d seconds
complete -c muslin -n $trace -s s -x -d "bytes of each packet"
complete -c muslin -n "__fish_seen_subcommand_from metrics" -l listen -x -d "serve by HTTP at this port"
complete -c muslin -n "__fish_seen_subcommand_from top" -s n -x -d times
complete -c muslin -n "__fish_seen_subcommand_from top" -l interval -x -d "seconds between two"
complete -c muslin -n "__fish_seen_subcommand_from timeline" -l start -d "begin to record"
complete -c muslin -n "__fish_seen_subcommand_from log" -s f -d follow
complete -c muslin -n "__fish_seen_subcommand_from up partitions cp" -F
set -l up "__fish_seen_subcommand_from up"
complete -c muslin -n $up -l seed -x -d "seed of random numbers"
complete -c muslin -n $up -l foreground -d "do not detach"
complete -c muslin -n $up -l hold -x -d pipe
complete -c muslin -n $up -l shards -x -d daemons
complete -c muslin -n $up -l join -x -d "shard of the topology"
complete -c muslin -n $up -l no-sm -d "no embedded subnet manager"
complete -c muslin -n $up -l sm-host -x -a "(__muslin_hosts)"
complete -c muslin -n $up -l priority -x -d "of the subnet manager"
complete -c muslin -n $up -l partitions -r -d partitions.conf
complete -c muslin -n $up -l routing -x -a "minhop updn auto"
complete -c muslin -n $up -l lfts -r -d "forwarding tables"
complete -c muslin -n $up -l lmc -x -d LMC
complete -c muslin -n $up -l sweep -x -d 'seconds between light sweeps'
complete -c muslin -n $up -l keep-lids -d "LIDs of the topology"
complete -c muslin -n $up -l packet-life -x -d PacketLifeTime
complete -c muslin -n $up -l subnet-prefix -x -d "prefix of GIDs"
complete -c muslin -n $up -l qos -d "VL tables"
complete -c muslin -n $up -l apm -d "alternate paths"
complete -c muslin -n $up -l help
set -l vm "__fish_seen_subcommand_from vm"
complete -c muslin -n $vm -l mem -x -d memory
complete -c muslin -n $vm -l cpus -x -d processors
complete -c muslin -n $vm -l arch -x -a "amd64 arm64"
complete -c muslin -n $vm -l kernel -r -a newest
complete -c muslin -n $vm -l qemu -r -a newest
complete -c muslin -n $vm -l qemu-arg -x -d "argument for QEMU"
complete -c muslin -n $vm -l model -x -a "muslin connectx"
complete -c muslin -n $vm -l image -r -a debian
complete -c muslin -n $vm -l ssh-port -x -d "port of SSH"
complete -c muslin -n $vm -l share -r -d "directory in the guest"
complete -c muslin -n $vm -l packages -x -d "Debian packages"
complete -c muslin -n $vm -l module -x -d "kernel modules"
complete -c muslin -n $vm -l append -x -d "for the kernel"
complete -c muslin -n $vm -l tcp -x -d "ports for programs in host mode"
complete -c muslin -n $vm -l console -r -d "file for the console"
complete -c muslin -n $vm -l snapshot -d "resume from a snapshot"
complete -c muslin -n $vm -l no-snapshot -d boot
complete -c muslin -n $vm -l print -d "arguments for QEMU"
complete -c muslin -n $vm -l build -d "the image alone"
complete -c muslin -n $vm -l help
