// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The daemon's command line, passed on by `muslin up`. */
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/lib/option.h"

static void options_usage(void)
{
	puts("usage: muslin up [--name FABRIC] [OPTION...] [TOPOLOGY]\n"
	     "TOPOLOGY is a file, or a line such as 'ring 3': muslin-topology(5). Without it there are two leafs,\n"
	     "two spines and eight hosts.\n"
	     "  --seed N                     seed of all random numbers (1)\n"
	     "  --foreground                 do not detach; the log goes to standard error\n"
	     "  --hold FD                    end when the other end of this pipe is closed\n"
	     "  --shards N | --join SHARD    N daemons of this machine, or the one of a line \"shard\" of TOPOLOGY\n"
	     "  --no-sm | --sm-host HOST     no embedded subnet manager, or on this host (the first one)\n"
	     "  --priority N                 its priority (0)\n"
	     "  --partitions FILE            its partitions.conf\n"
	     "  --routing minhop|updn|auto   its routing engine (auto)\n"
	     "  --lfts FILE                  forwarding tables, as dump_fts prints them\n"
	     "  --lmc N, --keep-lids         LMC of hosts' ports (0); LIDs as TOPOLOGY gives them\n"
	     "  --sweep SECONDS              from one light sweep to the next (10)\n"
	     "  --packet-life N              PacketLifeTime 4.096 us * 2^N (18)\n"
	     "  --subnet-prefix N            prefix of all GIDs (0xfe80000000000000)\n"
	     "  --qos, --apm                 program VL tables; connections of rdma_cm load alternate paths");
}

/* "1/4": the second of four daemons. */
static void options_shard(struct daemon_options *opt, const char *text)
{
	char tail;

	if (sscanf(text, "%u/%u%c", &opt->shard, &opt->shards, &tail) == 2 && opt->shard < opt->shards &&
	    opt->shards <= FABRIC_SHARDS_MAX)
		return;
	fprintf(stderr, "muslin: --shard %s: not like 0/2, of up to %d\n", text, FABRIC_SHARDS_MAX);
	exit(OPTION_USAGE);
}

enum option_id {
	OPT_NAME = 256,
	OPT_SEED,
	OPT_FOREGROUND,
	OPT_HOLD,
	OPT_NO_SM,
	OPT_SM_HOST,
	OPT_PARTITIONS,
	OPT_ROUTING,
	OPT_LMC,
	OPT_KEEP_LIDS,
	OPT_LFTS,
	OPT_SWEEP,
	OPT_PACKET_LIFE,
	OPT_PRIORITY,
	OPT_QOS,
	OPT_APM,
	OPT_SUBNET_PREFIX,
	OPT_SHARD,
	OPT_JOIN,
	OPT_VERSION
};

static const struct option options[] = {
	{ "name", required_argument, NULL, OPT_NAME },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "foreground", no_argument, NULL, OPT_FOREGROUND },
	{ "help", no_argument, NULL, 'h' },
	{ "no-sm", no_argument, NULL, OPT_NO_SM },
	{ "sm-host", required_argument, NULL, OPT_SM_HOST },
	{ "partitions", required_argument, NULL, OPT_PARTITIONS },
	{ "routing", required_argument, NULL, OPT_ROUTING },
	{ "lmc", required_argument, NULL, OPT_LMC },
	{ "keep-lids", no_argument, NULL, OPT_KEEP_LIDS },
	{ "lfts", required_argument, NULL, OPT_LFTS },
	{ "sweep", required_argument, NULL, OPT_SWEEP },
	{ "packet-life", required_argument, NULL, OPT_PACKET_LIFE },
	{ "priority", required_argument, NULL, OPT_PRIORITY },
	{ "qos", no_argument, NULL, OPT_QOS },
	{ "apm", no_argument, NULL, OPT_APM },
	{ "subnet-prefix", required_argument, NULL, OPT_SUBNET_PREFIX },
	{ "shard", required_argument, NULL, OPT_SHARD },
	{ "join", required_argument, NULL, OPT_JOIN },
	{ "hold", required_argument, NULL, OPT_HOLD },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

/* The embedded subnet manager's alone: without it they would have no effect. */
static bool options_of_manager(int id)
{
	static const int ids[] = { OPT_SM_HOST, OPT_PARTITIONS,  OPT_ROUTING,  OPT_LMC, OPT_LFTS,
				   OPT_SWEEP,   OPT_PACKET_LIFE, OPT_PRIORITY, OPT_QOS, OPT_SUBNET_PREFIX };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		if (ids[i] == id)
			return true;
	return false;
}

static void options_parse_option(struct daemon_options *opt, int id)
{
	switch (id) {
	case OPT_NAME:
		if (!*optarg) {
			fputs("muslin: --name: missing FABRIC\n", stderr);
			exit(OPTION_USAGE);
		}
		opt->name = optarg;
		break;
	case OPT_SEED:
		opt->seed = option_number("muslin", "--seed", 0, UINT64_MAX);
		break;
	case OPT_FOREGROUND:
		opt->foreground = true;
		break;
	case OPT_HOLD:
		opt->hold = (int)option_number("muslin", "--hold", 0, 1 << 20);
		break;
	case OPT_NO_SM:
		opt->no_sm = true;
		break;
	case OPT_SM_HOST:
		opt->sm_host = optarg;
		break;
	case OPT_PARTITIONS:
		opt->partitions = realpath(optarg, NULL) ?: optarg; /* read again later, from another directory */
		break;
	case OPT_ROUTING:
		opt->routing = optarg;
		break;
	case OPT_LMC:
		opt->lmc = (u8)option_number("muslin", "--lmc", 0, 7);
		break;
	case OPT_KEEP_LIDS:
		opt->keep_lids = true;
		break;
	case OPT_LFTS:
		opt->lfts = realpath(optarg, NULL) ?: optarg;
		break;
	case OPT_SWEEP:
		opt->sweep = (u32)option_number("muslin", "--sweep", 1, 86400);
		break;
	case OPT_PACKET_LIFE:
		opt->packet_life = (u8)option_number("muslin", "--packet-life", 1, 31);
		break;
	case OPT_PRIORITY:
		opt->priority = (u8)option_number("muslin", "--priority", 0, 15);
		break;
	case OPT_QOS:
		opt->qos = true;
		break;
	case OPT_APM:
		opt->apm = true;
		break;
	case OPT_SUBNET_PREFIX:
		opt->subnet_prefix = option_number("muslin", "--subnet-prefix", 0, UINT64_MAX);
		break;
	case OPT_SHARD:
		options_shard(opt, optarg);
		break;
	case OPT_JOIN:
		opt->join = optarg;
		break;
	case 'h':
		options_usage();
		exit(0);
	case OPT_VERSION:
		puts("muslind " MUSLIN_VERSION);
		exit(0);
	default: /* getopt_long() has said why */
		exit(OPTION_USAGE);
	}
}

void daemon_options_parse(struct daemon_options *opt, int argc, char **argv)
{
	const char *name = getenv("MUSLIN_NAME"), *unknown = option_unknown(argc, argv, options), *of_manager = NULL;
	static char program[] = "muslin";
	int id, which = 0;

	if (unknown) {
		fprintf(stderr, "muslin: %s: no such option; `muslin up --help` lists them\n", unknown);
		exit(OPTION_USAGE);
	}
	opt->name = name && *name ? name : "default";
	opt->seed = 1;
	opt->hold = -1;
	argv[0] = program; /* in messages of getopt_long() */
	while ((id = getopt_long(argc, argv, "h", options, &which)) != -1) {
		options_parse_option(opt, id);
		if (options_of_manager(id))
			of_manager = options[which].name;
	}
	if (optind < argc)
		opt->topology = argv[optind++];
	if (optind < argc)
		fprintf(stderr, "muslin: %s: more than one topology\n", argv[optind]);
	else if (opt->join && opt->shards)
		fputs("muslin: --join and --shards exclude each other\n", stderr);
	else if (opt->no_sm && of_manager)
		fprintf(stderr,
			"muslin: --no-sm and --%s exclude each other: it is an option of the embedded subnet manager\n",
			of_manager);
	else if (opt->join && !opt->topology)
		fputs("muslin: --join needs a topology, with lines \"shard\" as in muslin-topology(5)\n", stderr);
	else
		return;
	exit(OPTION_USAGE);
}
