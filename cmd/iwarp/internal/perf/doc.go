// Package perf is the instrument behind "iwarp perf": it measures operations of the
// library between two processes, each against a baseline that is run in turn with it.
//
// The client tells the server over a control connection what to prepare; the data
// goes over connections of its own. A measurement is a series of pairs: the subject
// runs, then the baseline, then the subject again. Each pair has its ratio, and the
// median of the ratios is what counts: the speed of a shared machine changes from
// minute to minute, the ratio of two things done within the same 200 ms hardly.
package perf
