package qpconn

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	rxNames = [...]string{
		rxArmed: "Armed", rxReserved: "Reserved", rxUnstarted: "Unstarted", rxStalled: "Stalled", rxOver: "Over", rxEnded: "Ended", rxBusy: "Busy",
		rxParked: "Parked", rxRecalled: "Recalled",
	}
	txNames = [...]string{
		txIdle: "Idle", txSending: "Sending", txSendingMore: "SendingMore", txOffered: "Offered", txWriter: "Writer", txWriterMore: "WriterMore",
		txClosed: "Closed",
	}
	phaseNames = [...]string{phaseOpen: "open", phaseDiscard: "after Discard", phaseClosed: "after Close"}
	placeNames = [...]string{
		away: "away", posts: "posts", sends: "sends", hasShared: "hasShared", hasSent: "hasSent", comes: "comes", sendsFirst: "sendsFirst",
		hasSharedFirst: "hasSharedFirst", hasSentFirst: "hasSentFirst", registers: "registers", sleeps: "sleeps", wakesUp: "wakesUp", reads: "reads",
		stalls: "stalls", aboutToPark: "aboutToPark", parks: "parks", leaves: "leaves", closes: "closes",
	}
)

// String returns the state in the names of arbiter.go and place. Zero values are left out.
func (s world) String() string {
	a := &s.arbiter
	words := []string{fmt.Sprintf("rx %s, tx %s, %s", rxNames[a.rx], txNames[a.tx], phaseNames[a.phase])}
	if a.rx >= rxBusy {
		words = append(words, "held by "+nameOf(a.holder))
	}
	for _, id := range a.queue {
		if id != theReader {
			words = append(words, nameOf(id)+" is queued")
		}
	}
	if a.noArm {
		words = append(words, "noArm")
	}
	for i := range s.waiters {
		if text := inWords(reflect.ValueOf(s.waiters[i])); text != "" {
			words = append(words, fmt.Sprintf("%s {%s}", nameOf(uint8(i+1)), text))
		}
	}
	all := reflect.ValueOf(s)
	for i := range all.NumField() {
		switch name := all.Type().Field(i).Name; name {
		case "arbiter", "waiters":
		default:
			words = append(words, fieldInWords(name, all.Field(i))...)
		}
	}
	return strings.Join(words, ", ")
}

func nameOf(id uint8) string {
	if id == theReader {
		return "the reader"
	}
	return fmt.Sprintf("waiter %d", id)
}

// inWords returns the fields of a struct that are not zero.
func inWords(v reflect.Value) string {
	var words []string
	for i := range v.NumField() {
		words = append(words, fieldInWords(v.Type().Field(i).Name, v.Field(i))...)
	}
	return strings.Join(words, ", ")
}

func fieldInWords(name string, v reflect.Value) []string {
	switch {
	case v.IsZero():
		return nil
	case v.Kind() == reflect.Bool:
		return []string{name}
	case v.Type() == reflect.TypeFor[place]():
		return []string{name + ": " + placeNames[v.Uint()]}
	case v.Kind() == reflect.Struct:
		return []string{fmt.Sprintf("%s {%s}", name, inWords(v))}
	}
	return []string{fmt.Sprintf("%s: %v", name, v)}
}

// TestFaultsNameStates: the explorer describes a fault in words, which the table of arbiter.go explains.
func TestFaultsNameStates(t *testing.T) {
	for _, names := range [][]string{rxNames[:], txNames[:], phaseNames[:], placeNames[:]} {
		require.NotContains(t, names, "", "a new state needs a name above, and steps and conditions in the world")
	}
	s := world{arbiter: snapshot{rx: rxParked, tx: txOffered, phase: phaseDiscard, holder: 2, queue: [3]uint8{1}}, reader: parks, eof: true, asks: 2}
	s.waiters[1] = waiterState{at: aboutToPark, token: true}
	s.budget.noArm = true
	require.Equal(t, "rx Parked, tx Offered, after Discard, held by waiter 2, waiter 1 is queued, waiter 2 {at: aboutToPark, token}, "+
		"reader: parks, asks: 2, eof, budget {noArm}", s.String())
	_, err := worlds.explore(world{budget: budget{waits: [3]uint8{1, 0, 0}, asks: 1, lateDisarm: true}, armed: true}, 1_000_000)
	require.ErrorContains(t, err, "rx Armed, tx Idle, open")
}
