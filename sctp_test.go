package iwarp

import "testing"

func TestSessionsMoveData(t *testing.T) { writeReadSend(t, pairConfig{network: "sctp+udp"}) }
