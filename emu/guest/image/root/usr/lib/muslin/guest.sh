# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=sh
# Functions that configure a guest by QEMU's fw_cfg: for the init of muslin's own image, and for images of disks, to which SSH brings
# them (ssh.py). busybox, GNU and procps have what is called here.
conf=/sys/firmware/qemu_fw_cfg/by_name/opt/muslin

shares() {
	for share in "$conf"/share*; do
		[ -e "$share" ] || continue
		read -r tag path <"$share/raw"
		modprobe -a 9p 9pnet_virtio
		mkdir -p "$path"
		mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=mmap "$tag" "$path"
	done
}

# The interface of each port gets the addresses that the fabric gives the port, and gets them again when it comes again, as other
# systems' daemons see to it.
ib_names() { # of IPoIB interfaces, by port: a distribution may name them after their PCI functions
	for i in /sys/class/net/*/type; do
		[ "$(cat "$i")" = 32 ] && basename "${i%/type}"
	done
}

ib_up() { # INTERFACE NUMBER
	# shellcheck disable=SC2013 # words of one line
	for ip in $(cat $conf/ips"$2"/raw 2>/dev/null); do
		ip addr replace "$ip" dev "$1"
	done
	ip link set "$1" up
}

ib_watch() { # INTERFACE NUMBER INDEX
	while read -r _; do
		now=$(cat "/sys/class/net/$1/ifindex" 2>/dev/null) || continue
		[ "$now" = "$3" ] || ib_up "$1" "$2"
		set -- "$1" "$2" "$now"
	done
}

ib_addresses() {
	n=0
	for ib in $(ib_names); do
		[ -e "$conf/ips$n" ] || break
		ib_up "$ib" "$n"
		# busybox takes its own ip, which does not know how, for any without a path
		/bin/ip monitor link </dev/null | ib_watch "$ib" "$n" "$(cat "/sys/class/net/$ib/ifindex")" &
		n=$((n + 1))
	done
}

# So does each network card: its station's address and IP addresses, those with @VLAN on an interface of their own.
cards() {
	for card in "$conf"/card*; do
		[ -e "$card" ] || continue
		modprobe virtio_net
		# shellcheck disable=SC2046
		set -- $(cat "$card/raw")
		dev=$(grep -l "$1" /sys/class/net/*/address | head -n 1)
		dev=$(basename "${dev%/address}")
		shift
		ip link set "$dev" up
		for ip; do
			on=$dev
			if [ "$ip" != "${ip%@*}" ]; then
				on=$dev.${ip#*@}
				modprobe 8021q
				[ -e "/sys/class/net/$on" ] || ip link add link "$dev" name "$on" type vlan id "${ip#*@}"
				ip link set "$on" up
			fi
			ip addr replace "${ip%@*}" dev "$on"
		done
	done
}

# The machine outside, whose sockets the last of the cards reaches.
machine() {
	[ -e $conf/machine ] && echo "$(cat $conf/machine/raw) machine" >>/etc/hosts
}

port() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		for d in /sys/class/virtio-ports/*; do
			[ "$(cat "$d/name" 2>/dev/null)" = "$1" ] && { echo "/dev/${d##*/}"; return; }
		done
		sleep 0.1
	done
}

# Between two looks at a port that nobody is connected to. In muslin's own image without a process: busybox reads a FIFO that nobody writes.
# shellcheck disable=SC3045 # the FIFO exists where busybox is the shell
pause() { if [ -p /run/pause ]; then read -r -t 0.2 _ <>/run/pause; else sleep 0.2; fi; }

# The size of the terminal behind the console, at the start and whenever it changes.
sizes() {
	device=$(port muslin.size)
	tty=/dev/$(sed 's/.* //' /sys/class/tty/console/active)
	[ -n "$device" ] || return
	exec 4<>"$device"
	while :; do
		read -r rows columns <&4 || { sleep 1; continue; }
		stty rows "$rows" cols "$columns" <"$tty" # the foreground process group gets SIGWINCH
	done
}

# `muslin cp`: a line is a verb, mode, size and blocks of the file, its name and a path in base64; the answer a status, a size and,
# where it failed, why.
files() {
	exec 4<>"$1"
	while :; do
		read -r verb mode size blocks name path <&4 || { pause; continue; } # nobody is connected
		name=$(echo "$name" | base64 -d 2>/dev/null)
		path=$(echo "$path" | base64 -d)
		case $verb in
		put)
			[ -d "$path" ] && path=${path%/}/$name
			if why=$(
				[ "${path%/}" = "$path" ] || { echo "no such directory in the guest" && exit 1; }
				{ dd bs=65536 count="$blocks" iflag=fullblock <&4 >"$path.part" &&
					[ "$(stat -c %s "$path.part")" -ge "$size" ] && truncate -s "$size" "$path.part" &&
					chmod "$mode" "$path.part" && mv -f "$path.part" "$path"; } 2>&1
			); then
				echo "0 0" >&4
			else
				rm -f "$path.part"
				echo "1 0 $(echo "$why" | grep -v records | sed "s/^.*: line [0-9]*: //; q")" >&4
				cat <&4 >/dev/null # the rest of it
			fi
			;;
		get)
			if [ -f "$path" ] && [ -r "$path" ]; then
				echo "0 $(stat -L -c %s "$path")" >&4
				cat "$path" >&4
			else
				echo "1 0 no such file in the guest" >&4
			fi
			;;
		esac
	done
}

# Tests: a line is a number, the seconds that the command may take, a delimiter that its output does not contain, and the command with
# escapes for printf; the response is the output, the delimiter, the number and the status, -1 after these seconds, by the clock that ends the
# command. An emulated processor starts few programs in a second: the shell does what it can itself.
serve() {
	exec 3<>"$(port muslin.agent)"
	echo "muslin: the agent is ready" >&3
	while :; do
		read -r n seconds delimiter line <&3 || { pause; continue; }
		printf %b "$line" >"/tmp/command.$n"
		read -r began _ </proc/uptime
		timeout -s KILL "$seconds" /bin/sh "/tmp/command.$n" >"/tmp/output.$n" 2>&1 </dev/null 3>&-
		s=$?
		read -r now _ </proc/uptime
		[ $s != 137 ] || [ $((${now%.*} - ${began%.*})) -lt "$seconds" ] || s=-1
		[ ! -s "/tmp/output.$n" ] || cat "/tmp/output.$n" >&3
		echo "$delimiter $n $s" >&3
		true >"/tmp/command.$n"
		true >"/tmp/output.$n"
	done
}

# What init does in muslin's own image. The caller's streams go to the background, too.
configure() {
	modprobe -qa virtio_console qemu_fw_cfg
	[ -e $conf ] || { echo "muslin: the guest's kernel has no qemu_fw_cfg, so that it is not configured" >&2; return; }
	hostname "$(cat $conf/host/raw)"
	# shellcheck disable=SC2046
	[ -e $conf/modules ] && modprobe -a $(cat $conf/modules/raw)
	shares
	modprobe -q muslin || modprobe -q mlx5_ib
	modprobe -qa ib_umad ib_uverbs ib_ipoib rdma_ucm # flavours for clouds have no IPoIB
	udevadm settle 2>/dev/null
	ib_addresses
	cards
	machine
	copies=$(port muslin.files)
	[ -n "$copies" ] && files "$copies" &
	[ -e $conf/terminal ] && sizes &
	[ "$(cat $conf/mode/raw 2>/dev/null)" = agent ] && serve &
}
