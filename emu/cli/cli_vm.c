// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin vm: requests the hosts' devices from the daemon, then executes the
 * program that builds images and runs QEMU. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/cli/cli.h"
#include "emu/ctl/ctl.h"

/* Appends a line to the variable. */
static void add_line(char **text, const char *a, const char *b)
{
	char *more;

	if (asprintf(&more, "%s%s%s%s\n", *text ? *text : "", a, b ? "=" : "", b ? b : "") < 0)
		cli_fail(CLI_ERROR, "out of memory");
	free(*text);
	*text = more;
}

/* Variables of the guest, with one line per device. */
struct devices {
	char *hcas, *connectx, *cards, *ips, *monitors;
	char *first; /* host's name */
	int ncards;
};

/* A line of @line, which is freed, and @words. */
static void add_words(char **text, char *line, const json_t *words)
{
	const json_t *word;
	char *more;
	size_t i;

	json_array_foreach(words, i, word)
	{
		if (asprintf(&more, "%s%s%s", line, *line ? " " : "", json_string_value(word)) < 0)
			cli_fail(CLI_ERROR, "out of memory");
		free(line);
		line = more;
	}
	add_line(text, line, NULL);
	free(line);
}

/* "SOCKET MAC MTU ADDRESS..." */
static void take_card(struct devices *d, const json_t *card)
{
	char *line;

	if (!json_is_object(card))
		return;
	if (asprintf(&line, "%s %s %lld", cli_text(card, "socket"), cli_text(card, "mac"), cli_number(card, "mtu")) < 0)
		cli_fail(CLI_ERROR, "out of memory");
	add_words(&d->cards, line, json_object_get(card, "ips"));
	d->ncards++;
}

/*
 * Requests the devices of @host, passing one end of a socket pair. The other end becomes a QMP monitor of QEMU,
 * through which the daemon sets the carrier of the host's network card, if any.
 */
static json_t *vm_request_devices(int sock, const char *host, struct devices *d)
{
	char netdev[16], fd[16], err[1024];
	json_t *req, *answer;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		cli_fail(CLI_ERROR, "socketpair: %s", strerror(errno));
	snprintf(netdev, sizeof(netdev), "net%d", d->ncards);
	req = json_pack("{s:s, s:s, s:s}", "command", "vm", "name", host, "netdev", netdev);
	answer = ctl_call(sock, req, pair[1], err, sizeof(err));
	if (!answer)
		cli_fail(CLI_ERROR, "%s", err);
	json_decref(req);
	close(pair[1]);
	snprintf(fd, sizeof(fd), "%d", pair[0]);
	if (json_is_object(json_object_get(answer, "card")))
		add_line(&d->monitors, fd, NULL);
	else
		close(pair[0]);
	return answer;
}

/* Adds the devices of @host to the guest. */
static void take_host(int sock, const char *host, struct devices *d)
{
	json_t *a = vm_request_devices(sock, host, d), *port, *path;
	bool first = !d->hcas;
	char queues[16];
	size_t i;

	host = cli_text(a, "name"); /* the argument may be a GUID, or a part of the node description */
	add_line(&d->hcas, host, cli_text(a, "socket"));
	json_array_foreach(json_object_get(a, "connectx"), i, path)
		add_line(&d->connectx, host, json_string_value(path));
	if (first)
		d->first = strdup(host);
	snprintf(queues, sizeof(queues), "%lld", cli_number(a, "queues"));
	setenv("MUSLIN_VM_QUEUES", queues, 1);
	if (first)
		json_array_foreach(json_object_get(a, "ips"), i, port) add_words(&d->ips, strdup(""), port);
	take_card(d, json_object_get(a, "card"));
	json_decref(a);
}

/*
 * Passes the host's first loopback address of host mode to the guest (emu/daemon/addresses.c): its IPv6 addresses have
 * others.
 */
static void pass_loopback(const char *host)
{
	char path[RUNDIR_PATH_MAX], line[256], name[64], loopback[64];
	bool found = false;
	FILE *f = fopen(rundir_path(&cli_run, RUNDIR_TREE "/addresses", path), "re");

	setenv("MUSLIN_VM_LOOPBACK", "", 1);
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%63s %*s %63s", name, loopback) == 2 && !strcmp(name, host);
	if (found)
		setenv("MUSLIN_VM_LOOPBACK", loopback, 1);
	if (f)
		fclose(f);
}

/* Checks that each host is in the list once. */
static void check_hosts(const char *list)
{
	char *all = strdup(list), *host, *save, *seen = NULL, *more;

	for (host = strtok_r(all, ",", &save); host; host = strtok_r(NULL, ",", &save)) {
		if (asprintf(&more, "%s,%s,", seen ? seen : "", host) < 0)
			cli_fail(CLI_ERROR, "out of memory");
		if (seen && strstr(seen, more + strlen(seen)))
			cli_fail(CLI_USAGE, "%s: host %s is named twice", list, host);
		free(seen);
		seen = more;
	}
	free(seen);
	free(all);
}

static const char *const places[] = { "muslin-vm", "../../emu/guest/muslin-vm", NULL };

/* Passes the directory of the guest's file-sharing socket. */
static void pass_files(const char *host)
{
	char path[RUNDIR_PATH_MAX];

	close(cli_connect_place(host));
	setenv("MUSLIN_VM_FILES", rundir_path(&cli_place, RUNDIR_GUESTS, path), 1);
}

int cli_cp(int argc, char **argv)
{
	char tool[RUNDIR_PATH_MAX], **words = calloc((size_t)argc + 2, sizeof(*words)), *host;
	int i;

	cli_beside(tool, sizeof(tool), places);
	if (!words)
		cli_fail(CLI_ERROR, "out of memory");
	for (i = 1; i < argc && !strchr(argv[i], ':'); i++)
		;
	host = strndup(i < argc ? argv[i] : "", i < argc ? strcspn(argv[i], ":") : 0);
	pass_files(host ? host : "");
	free(host);
	words[0] = tool;
	words[1] = strdup("--cp");
	memcpy(words + 2, argv + 1, (size_t)(argc - 1) * sizeof(*words));
	execv(tool, words);
	fprintf(stderr, "muslin: %s: %s\n", tool, strerror(errno));
	return CLI_ERROR;
}

int cli_vm(int argc, char **argv)
{
	char tool[RUNDIR_PATH_MAX], *hosts, *host, *save;
	struct devices d = { NULL };
	int sock;

	if (argc == 2 && !strcmp(argv[1], "--version"))
		return puts("muslin " MUSLIN_VERSION) == EOF ? CLI_ERROR : CLI_OK;
	cli_beside(tool, sizeof(tool), places);
	if (argc < 2 || (argv[1][0] == '-' && strcmp(argv[1], "--build") && strcmp(argv[1], "--help")))
		cli_fail(CLI_USAGE,
			 "usage: muslin vm [--name FABRIC] HOST[,HOST...] [OPTION...] [-- PROGRAM [ARGUMENT...]]; "
			 "`muslin vm --help` names the options");
	if (argv[1][0] != '-') {
		check_hosts(argv[1]);
		hosts = strdup(argv[1]);
		for (host = strtok_r(hosts, ",", &save); host; host = strtok_r(NULL, ",", &save)) {
			sock = cli_connect_place(host);
			take_host(sock, host, &d);
			close(sock);
		}
		pass_loopback(d.first ? d.first : "");
		pass_files(d.first ? d.first : "");
		free(hosts);
		free(d.first);
		setenv("MUSLIN_VM_HCAS", d.hcas ? d.hcas : "", 1);
		setenv("MUSLIN_VM_CONNECTX", d.connectx ? d.connectx : "", 1);
		setenv("MUSLIN_VM_CARDS", d.cards ? d.cards : "", 1);
		setenv("MUSLIN_VM_MONITORS", d.monitors ? d.monitors : "", 1);
		setenv("MUSLIN_VM_IPS", d.ips ? d.ips : "", 1);
		argv++;
	}
	argv[0] = tool;
	execv(tool, argv);
	fprintf(stderr, "muslin: %s: %s\n", tool, strerror(errno));
	return CLI_ERROR;
}
