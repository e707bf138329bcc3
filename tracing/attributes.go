package tracing

import (
	"encoding/hex"
	"net"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/goiwarp/iwarp"
)

// The attributes that no convention defines.
const (
	keyPath     = attribute.Key("iwarp.path")          // QPStats.Path
	keyPeer     = attribute.Key("iwarp.peer.identity") // Peer.ID in hexadecimal
	keyStage    = attribute.Key("iwarp.setup.stage")   // in which a set-up has failed
	keyOctets   = attribute.Key("iwarp.octets")        // of payload
	keyRequests = attribute.Key("iwarp.work_requests") // of a list

	keyLayer  = attribute.Key("iwarp.terminate.layer") // of a TerminateError: the numbers of RFC 6580
	keyType   = attribute.Key("iwarp.terminate.type")
	keyCode   = attribute.Key("iwarp.terminate.code")
	keyRemote = attribute.Key("iwarp.terminate.remote")
	keyCommit = attribute.Key("iwarp.commit.code") // of a *commit.Error

	keyRegion = attribute.Key("iwarp.rma.region")
	keyOffset = attribute.Key("iwarp.rma.offset")
	keyReason = attribute.Key("iwarp.rma.reason") // OpError.Reason
)

// target returns the attributes of the target of Dial.
func target(network, addr string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{transport(network)}
	host, port := split(addr)
	attrs = append(attrs, semconv.ServerAddress(host))
	if port != 0 {
		attrs = append(attrs, semconv.ServerPort(port))
	}
	return attrs
}

// ends returns the attributes of the two ends of a connection, of which either may be nil.
func ends(local, remote net.Addr) []attribute.KeyValue {
	var attrs []attribute.KeyValue
	if remote != nil {
		host, port := split(remote.String())
		attrs = append(attrs, transport(remote.Network()), semconv.NetworkPeerAddress(host))
		if port != 0 {
			attrs = append(attrs, semconv.NetworkPeerPort(port))
		}
	}
	if local != nil {
		host, port := split(local.String())
		attrs = append(attrs, semconv.NetworkLocalAddress(host))
		if port != 0 {
			attrs = append(attrs, semconv.NetworkLocalPort(port))
		}
	}
	return attrs
}

// established returns the attributes of a QP that was set up.
func established(qp *iwarp.QP) []attribute.KeyValue {
	attrs := append(ends(qp.LocalAddr(), qp.RemoteAddr()), keyPath.String(qp.Stats().Path))
	if peer, known := qp.Peer(); known {
		attrs = append(attrs, keyPeer.String(hex.EncodeToString(peer.ID[:])))
	}
	return attrs
}

// transport returns network.transport, which does not distinguish IPv4 and IPv6.
func transport(network string) attribute.KeyValue {
	return semconv.NetworkTransportKey.String(valid(strings.TrimRight(network, "46")))
}

// valid returns a text as UTF-8, which an exporter requires of everything that it sends: otherwise it loses the span, and the spans
// sent with it. The names of files, and of Unix sockets, which the peer chooses, need not be UTF-8.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// split splits an address. An address without a numeric port is a host with port 0.
func split(addr string) (host string, port int) {
	addr = valid(addr)
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, 0
	}
	n, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return addr, 0
	}
	return host, int(n)
}

// label returns a text of the library as a part of a name: in lower case, words joined by underscores, as in package metrics.
func label(text string) string { return strings.ReplaceAll(strings.ToLower(text), " ", "_") }
