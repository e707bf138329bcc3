// Package perf implements "iwarp perf": it measures operations of the
// library between two processes, each against a baseline that is run in turn with it.
//
// The client tells the server over a control connection what to prepare; the data
// goes over separate connections. A measurement is a series of pairs: the subject
// runs, then the baseline, then the subject again. Each pair has its ratio, and the
// result is the median of the ratios: the speed of a shared machine changes from
// minute to minute, but the ratio of two things done within the same 200 ms hardly changes.
package perf
