# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of muslin-sim(1) for fish.
complete -c muslin-sim -l seconds -x -d "duration of the traffic"
complete -c muslin-sim -l pattern -x -a "random shift: all-to-all permutation incast hotspot: file:"
complete -c muslin-sim -l traffic -x -d "packets per second of each host"
complete -c muslin-sim -l load -x -d "share of the rate of the link"
complete -c muslin-sim -l size -x -d "payload of a packet"
complete -c muslin-sim -l sl -x -d "service levels"
complete -c muslin-sim -l fault -x -d "a fault"
complete -c muslin-sim -l sweep -x -d "interval of light sweeps"
complete -c muslin-sim -l routing -x -a "minhop updn auto"
complete -c muslin-sim -l lfts -r -d "forwarding tables"
complete -c muslin-sim -l lmc -x -d "LMC of hosts"
complete -c muslin-sim -l partitions -r
complete -c muslin-sim -l hoq -x -d HOQLife
complete -c muslin-sim -l qos -d "set up virtual lanes"
complete -c muslin-sim -l keep-lids -d "LIDs of the topology"
complete -c muslin-sim -l rates -x -a "enforced nominal"
complete -c muslin-sim -l seed -x -d "of random numbers"
complete -c muslin-sim -l summary -d "plain text"
complete -c muslin-sim -l html -r -d "page with plots"
complete -c muslin-sim -l help
complete -c muslin-sim -l version
