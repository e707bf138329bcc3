package metrics

import "github.com/prometheus/client_golang/prometheus"

// A metric is a row of docs/metrics.md.
type metric struct {
	name, kind string
	help       string
	labels     []string
	desc       *prometheus.Desc
}

// The kinds of metric.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// all are the metrics, in the order of the document.
var all []*metric

func define(kind, name, help string, labels ...string) *metric {
	m := &metric{name: "iwarp_" + name, kind: kind, help: help, labels: labels}
	m.desc = prometheus.NewDesc(m.name, help, labels, nil)
	all = append(all, m)
	return m
}

// Metrics of QPs. The label rnic is the index of the RNIC among the arguments of NewCollector.
var (
	qps      = define(gauge, "qps", "Established queue pairs now.", "rnic", "path")
	qpsMade  = define(counter, "qps_made_total", "Queue pairs that were established.", "rnic", "path")
	qpsEnded = define(counter, "qps_ended_total", "Queue pairs that have ended, by kind of end.", "rnic", "path", "how")

	messages = define(counter, "messages_total", "RDMAP messages by kind; received ones when they are complete.", "rnic", "path", "direction", "kind")
	payload  = define(counter, "payload_bytes_total", "Octets of payload by kind of message; received ones when they are placed.", "rnic", "path", "direction", "kind")
	duration = define(histogram, "operation_duration_seconds", "Time from PostSend until the completion of work requests that succeed (needs Config.Latency).", "rnic", "path", "op")

	queued        = define(gauge, "queued_work_requests", "Work requests in the send and receive queues now.", "rnic", "path", "queue")
	receiveWaits  = define(counter, "receive_waits_total", "Times that reading stopped because a message found no receive posted.", "rnic", "path")
	sharedTaken   = define(counter, "srq_receives_taken_total", "Receives that messages have taken from shared receive queues.", "rnic", "path")
	sharedHeld    = define(gauge, "srq_receives_held", "Receives of shared receive queues whose completion has not been polled now.", "rnic", "path")
	readWaits     = define(counter, "read_waits_total", "RDMA Reads that have waited for the window of a Solicitor.", "rnic", "path")
	readWaitTime  = define(counter, "read_wait_seconds_total", "Time that RDMA Reads have waited for the window of a Solicitor.", "rnic", "path")
	commits       = define(counter, "commits_served_total", "Valid Commits of peers.", "rnic", "path")
	commitsFailed = define(counter, "commits_failed_total", "Commits of peers that were answered with a status other than 0.", "rnic", "path")
	notDurable    = define(counter, "commit_regions_not_durable_total", "Regions in Commits of peers that have no durable backing.", "rnic", "path")

	tcpConnections = define(gauge, "tcp_connections", "Queue pairs now for which the kernel reports TCP data.", "rnic", "path")
	tcpRTT         = define(gauge, "tcp_rtt_seconds", "Mean of the smoothed round trips of the connections of iwarp_tcp_connections.", "rnic", "path")
	tcpUnacked     = define(gauge, "tcp_unacked_segments", "Segments of the connections of iwarp_tcp_connections that are not acknowledged now.", "rnic", "path")
	tcpRetransmits = define(counter, "tcp_retransmits_total", "TCP segments that were sent again.", "rnic", "path")
)

// Metrics of RNICs.
var (
	terminates    = define(counter, "terminates_total", "Queue pairs that have ended by a Terminate, by its code (RFC 6580); codes that no RFC defines are \"other\".", "rnic", "direction", "layer", "type", "code")
	cqOverflows   = define(counter, "cq_overflows_total", "Times that a completion queue began to lose completions.", "rnic")
	eventsDropped = define(counter, "events_dropped_total", "Events that found the channel of the RNIC full.", "rnic")
	setupsPending = define(gauge, "setups_pending", "Connections that are being set up now.", "rnic")
	setupsRefused = define(counter, "setups_refused_total", "Connections of initiators that were not established, by cause.", "rnic", "cause")
	setupsFailed  = define(counter, "setups_failed_total", "Connections of this side that were not established, by cause.", "rnic", "cause")
)

// Metrics of objects that are added by name.
var (
	authAccepted   = define(counter, "auth_accepted_total", "Connections of clients that were accepted, those without authentication included.", "name")
	authPlain      = define(counter, "auth_unauthenticated_total", "Connections of clients that were accepted without authentication (cm.Config.AllowUnauthenticated).", "name")
	authConnected  = define(counter, "auth_connected_total", "Connections to servers that were verified.", "name")
	authRefused    = define(counter, "auth_refused_total", "Connections of clients that were refused, by the reason of package cm.", "name", "reason")
	authSuppressed = define(counter, "auth_log_suppressed_total", "Refusals without a record in the log.", "name")
	authHalfOpen   = define(gauge, "auth_half_open", "Set-ups in progress now.", "name")

	rmaRegions      = define(gauge, "rma_regions", "Regions of an rma.Server now.", "name")
	rmaConnections  = define(gauge, "rma_connections", "Connections of an rma.Server now.", "name")
	rmaScratch      = define(gauge, "rma_scratch_bytes", "Memory for operations in progress now.", "name")
	rmaAuthFailures = define(counter, "rma_auth_failures_total", "Requests with a wrong key or without the required right, and data that differ from what was sealed.", "name")
	rmaNacks        = define(counter, "rma_nacks_total", "Requests that were refused for lack of memory or time.", "name")
	rmaExpired      = define(counter, "rma_expired_total", "Writes that were not copied in time.", "name")
	rmaLate         = define(counter, "rma_late_total", "Messages and data that came too late.", "name")
	rmaLateCommits  = define(counter, "rma_late_commits_total", "Copies that ended so late that the client may have given up.", "name")
	rmaOutcomes     = define(counter, "rma_client_operations_total", "Operations of an rma.Client that have ended, by the Outcome of package rma.", "name", "outcome")
	rmaTimeouts     = define(counter, "rma_client_timeouts_total", "Operations of an rma.Client without an answer in time, by the stage in which they waited.", "name", "stage")
	rmaClientLate   = define(counter, "rma_client_late_total", "Answers that came after the outcome had been reported.", "name")

	cqWaiting = define(gauge, "cq_completions", "Completions in a completion queue now that were not polled.", "name")
	cqDepth   = define(gauge, "cq_depth", "Completions that the queue can hold now.", "name")
	srqFree   = define(gauge, "srq_receives", "Receives in a shared receive queue now that wait for a message.", "name")
	srqDepth  = define(gauge, "srq_depth", "Receives that can wait in a shared receive queue.", "name")
	srqPosted = define(counter, "srq_receives_posted_total", "Receives that were posted to a shared receive queue.", "name")

	windowLimit   = define(gauge, "solicitor_window_bytes", "Size of the window of a Solicitor now.", "name")
	windowGranted = define(gauge, "solicitor_outstanding_bytes", "Octets that are granted now.", "name")
	windowQueued  = define(gauge, "solicitor_queued", "Operations that wait for the window now.", "name")
	windowGrants  = define(counter, "solicitor_grants_total", "Operations that were granted, by class.", "name", "class")
	windowOctets  = define(counter, "solicitor_granted_bytes_total", "Octets that were granted, by class.", "name", "class")
	windowExpired = define(counter, "solicitor_expired_total", "RDMA Reads that waited too long. Of an rma.Solicitor it stays 0: its clients and servers count them as timeouts and refusals.", "name")

	syncs = define(counter, "backing_syncs_total", "Syncs of a durable backing.", "name")
)
