package machine

import (
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fewFiles is a limit of descriptors that is too low for a server with many connections.
const fewFiles = 4096

func limits() []Fact {
	all := []Fact{descriptors(), locked()}
	for _, s := range []struct{ name, file, what string }{
		{"ports of clients", "net/ipv4/ip_local_port_range", "so many connections to one address and port"},
		{"congestion control", "net/ipv4/tcp_congestion_control", ""},
		{"listen backlog", "net/core/somaxconn", "connections that wait to be accepted"},
		{"socket buffers of SCTP", "net/core/rmem_max", "octets, without CAP_NET_ADMIN"},
	} {
		text, err := os.ReadFile("/proc/sys/" + s.file)
		if err != nil {
			continue // a container may hide it
		}
		f := Fact{Group: "limits", Name: s.name, Value: strings.Join(strings.Fields(string(text)), " to ")}
		if s.what != "" {
			f.Value += ": " + s.what
		}
		all = append(all, f)
	}
	return all
}

func descriptors() Fact {
	f := Fact{Group: "limits", Name: "descriptors"}
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		f.Value = err.Error()
		return f
	}
	f.Value = limit(l.Cur) + ", can be raised to " + limit(l.Max) + ": one for each connection"
	if l.Max < fewFiles {
		f.Lacks, f.Remedy = true, "ulimit -n 65536 as root, LimitNOFILE= of systemd, or /etc/security/limits.conf"
	}
	return f
}

// locked returns the limit of locked memory, which applies to cards, but not to this library.
func locked() Fact {
	f := Fact{Group: "limits", Name: "locked memory"}
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		f.Value = err.Error()
		return f
	}
	f.Value = limit(l.Cur) + " octets: not needed, since registered memory is not locked"
	return f
}

func limit(n uint64) string {
	if n == math.MaxUint64 {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}
