// Package pace extends time limits according to how slow the machine is now. A limit is chosen for
// an idle machine; if other programs use the processors, the bounded operations take longer, too.
//
// A Gauge performs a fixed piece of work on as many processors as the guest has, and divides the
// time by that on an idle machine. The quotient, at least 1 and at most Ceiling, is the scale. A
// limit passes in steps. The scale at the beginning of a step determines its length, so that a
// changed load counts from the next step on. A hang on an idle machine is detected after the limit,
// and on any machine after Ceiling times the limit.
package pace
