// Package pace stretches time limits by how slow the machine is now. A limit is chosen for an
// idle machine; where other programs take the processors, all that it bounds takes longer, too.
//
// A Gauge does a fixed piece of work on as many processors as the guest has, and compares the
// time that it takes with the time that it takes on an idle machine. The quotient, at least 1 and
// at most Ceiling, is the scale. A limit passes in steps, each of which lasts as long as the scale
// of its beginning says, so that a load that comes or goes counts from then on. A hang on an idle
// machine is noticed after the limit; on any machine, after Ceiling times the limit.
package pace
