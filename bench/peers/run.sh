#!/bin/sh
# Compares 1 MiB RDMA Writes of iwarp with one-sided operations of UCX and libfabric and
# with UCX's tagged messages: all in one run, in turn, over the loopback, under one
# congestion control. Prints the medians, and the median of the ratios of each round.
#
#	bench/peers/run.sh [ROUNDS [OCTETS]]
#
# As root it runs in a network namespace of its own with CC=reno (or what CC says);
# otherwise under the system's congestion control.
set -eu

rounds=${1:-9}
size=${2:-1048576}
depth=8
seconds=0.4
here=$(cd "$(dirname "$0")" && pwd)

if [ -z "${PEERS_INSIDE:-}" ]; then
	missing=
	for need in gcc:gcc go:golang ucx_perftest:ucx-utils; do
		command -v "${need%%:*}" >/dev/null || missing="$missing ${need#*:}"
	done
	if command -v gcc >/dev/null; then
		for need in ucp/api/ucp.h:libucx-dev rdma/fabric.h:libfabric-dev; do
			echo "#include <${need%%:*}>" | gcc -E - >/dev/null 2>&1 || missing="$missing ${need#*:}"
		done
	fi
	if [ -n "$missing" ]; then
		echo "run.sh: not installed:$missing" >&2
		echo "On Debian: apt-get install$missing" >&2
		exit 2
	fi
	PEERS_INSIDE=$(mktemp -d)
	export PEERS_INSIDE
	trap 'rm -rf "$PEERS_INSIDE"' EXIT INT TERM
	for peer in ucx:"-lucp -lucs" libfabric:-lfabric; do
		# shellcheck disable=SC2086 # two libraries are two words
		gcc -O2 -Wall -o "$PEERS_INSIDE/${peer%%:*}" "$here/${peer%%:*}.c" ${peer#*:}
	done
	(cd "$here/../.." && go build -o "$PEERS_INSIDE/iwarp" ./cmd/iwarp)
	if unshare -n true 2>/dev/null; then
		unshare -n sh -c 'ip link set lo up && sysctl -qw "net.ipv4.tcp_congestion_control=$1" && shift && exec "$@"' \
			sh "${CC:-reno}" "$here/run.sh" "$rounds" "$size"
	else
		"$here/run.sh" "$rounds" "$size"
	fi
	exit
fi

bin=$PEERS_INSIDE
export UCX_TLS=tcp UCX_NET_DEVICES=lo UCX_LOG_LEVEL=error

# Each of these prints GB/s.
iwarp() { # OP: the library, then plain TCP; --shared, for the other stacks have one buffer, too
	"$bin/iwarp" perf --json --cc "" --op "$1" --size "$size" --depth "$depth" --shared --crc=false --pairs 3 --baseline tcp |
		sed -n 's/.*"metric":"throughput","value":\([^,]*\),.*"baseline_value":\([^,]*\),.*/\1 \2/p'
}

tag() {
	ucx_perftest -p 13337 >/dev/null 2>&1 &
	server=$!
	sleep 0.3
	# The last line of -f -v is iterations, latencies, and the bandwidth: average and overall, in MiB/s.
	ucx_perftest 127.0.0.1 -p 13337 -t tag_bw -s "$size" -n 1500 -w 200 -f -v 2>/dev/null |
		tail -1 | awk -F, '{ printf "%.3f\n", $6 * 1048576 / 1e9 }'
	wait "$server" || true
}

echo "round,iwarp_write,tcp_write,iwarp_read,tcp_read,ucx_put,ucx_get,libfabric_put,libfabric_get,ucx_tag" >"$bin/rounds"
i=0
while [ "$i" -lt "$rounds" ]; do
	i=$((i + 1))
	# shellcheck disable=SC2046 # the words are the fields
	echo "$i" $(iwarp write) $(iwarp read) \
		"$("$bin/ucx" put "$size" "$seconds" "$depth")" "$("$bin/ucx" get "$size" "$seconds" "$depth")" \
		"$("$bin/libfabric" put "$size" "$seconds" "$depth")" "$("$bin/libfabric" get "$size" "$seconds" "$depth")" \
		"$(tag)" | tr ' ' ',' | tee -a "$bin/rounds" >&2
done

awk -F, '
function median(a, n,    i, j, t) {
	for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
	return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}
function column(c,    i, a) { for (i = 1; i <= n; i++) a[i] = v[i, c]; return median(a, n) }
function ratio(c, d,    i, a) { for (i = 1; i <= n; i++) a[i] = v[i, c] / v[i, d]; return median(a, n) }
function show(what, c, d, target,    q) {
	q = ratio(c, d)
	printf "%-28s %6.2f GB/s against %6.2f GB/s  ratio %5.2f", what, column(c), column(d), q
	if (target) { printf "  target >= %s %s", target, (q >= target ? "met" : "MISSED"); if (q < target) missed = 1 }
	print ""
}
NR == 1 { next }
NF != 10 { print "round " $1 " is not complete"; missed = 1; next }
{ n++; for (c = 2; c <= NF; c++) v[n, c] = $c }
END {
	if (!n) exit 1
	show("write against UCX put", 2, 6, 4)
	show("write against libfabric write", 2, 8, 2)
	show("write against UCX tag_bw", 2, 10, 1)
	show("read against UCX get", 4, 7)
	show("read against libfabric read", 4, 9)
	show("write against Go TCP", 2, 3)
	show("read against Go TCP", 4, 5)
	exit missed
}' "$bin/rounds"
