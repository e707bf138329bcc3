package enhanced

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

const all = transport.RTRSend | transport.RTRWrite | transport.RTRRead

func TestMPA2_20_RequestOffersEveryRTR(t *testing.T) {
	d := Request(Limits{IRD: 3, ORD: 2, RTR: all})
	require.Equal(t, Data{PeerToPeer: true, RTR: all, IRD: 3, ORD: 2}, d, "A and every kind that we can send")
	d = Request(Limits{IRD: 3, RTR: all})
	require.Equal(t, transport.RTRSend|transport.RTRWrite, d.RTR, "a Read cannot be sent without an ORD")
	d = Request(Limits{IRD: 3, ORD: 2})
	require.False(t, d.PeerToPeer, "no RTR means the client-server model")
}

func TestRequestKeepsDepthsInRange(t *testing.T) {
	d := Request(Limits{IRD: -1, ORD: 1 << 20, RTR: transport.RTRWrite})
	require.Equal(t, uint16(0), d.IRD, "a negative depth is none")
	require.Equal(t, uint16(MaxDepth), d.ORD, "a depth never becomes the value that leaves it to the ULP")
}

func TestMPA2_10_ResponderORDIsAtMostInitiatorIRD(t *testing.T) {
	for _, c := range []struct{ reqIRD, ours, want int }{
		{16, 8, 8}, {8, 8, 8}, {4, 8, 4}, {0, 8, 0}, {4, -1, 0},
	} {
		reply, agreed := Respond(Data{IRD: uint16(c.reqIRD)}, Limits{IRD: 1, ORD: c.ours, RTR: all})
		require.Equal(t, uint16(c.want), reply.ORD, "ORD in the Reply for %+v", c)
		require.Equal(t, c.want, agreed.ORD, "ORD kept to for %+v", c)
	}
}

func TestResponderTellsItsRealIRD(t *testing.T) {
	for _, ord := range []uint16{0, 4, 64} {
		reply, agreed := Respond(Data{IRD: 1, ORD: ord}, Limits{IRD: 16, ORD: 1, RTR: all})
		require.Equal(t, uint16(16), reply.IRD, "IRD in the Reply to an ORD of %d", ord)
		require.Equal(t, 16, agreed.IRD, "IRD kept to")
	}
}

func TestMPA2_11_ResponderRaisesIRDForAReadRTR(t *testing.T) {
	reply, agreed := Respond(Data{PeerToPeer: true, RTR: transport.RTRRead, IRD: 1}, Limits{ORD: 1, RTR: all})
	require.Equal(t, Data{PeerToPeer: true, RTR: transport.RTRRead, IRD: 1, ORD: 1}, reply, "room for the one Read that will come")
	require.Equal(t, Agreed{IRD: 1, ORD: 1, RTR: transport.RTRRead}, agreed)
	reply, agreed = Respond(Data{PeerToPeer: true, RTR: transport.RTRWrite, IRD: 1, ORD: 4}, Limits{ORD: 1, RTR: all})
	require.Equal(t, Data{PeerToPeer: true, RTR: transport.RTRWrite, ORD: 1}, reply, "another RTR needs none")
	require.Equal(t, Agreed{ORD: 1, RTR: transport.RTRWrite}, agreed)
}

func TestInitiatorFitsTheReply(t *testing.T) {
	for _, c := range []struct {
		name      string
		ours      Limits
		reply     Data
		ird, ord  int
		wantFault transport.Code
	}{
		{"as asked", Limits{IRD: 8, ORD: 8}, Data{IRD: 8, ORD: 8}, 8, 8, 0},
		{"more than asked", Limits{IRD: 8, ORD: 8}, Data{IRD: 16, ORD: 4}, 8, 8, 0},
		{"less than asked", Limits{IRD: 8, ORD: 8}, Data{IRD: 2, ORD: 8}, 8, 2, 0},
		{"no Reads taken", Limits{IRD: 8, ORD: 8}, Data{IRD: 0, ORD: 8}, 8, 0, 0},
		{"one too many", Limits{IRD: 8, ORD: 8}, Data{IRD: 8, ORD: 9}, 8, 8, transport.MPAInsufficientIRD},
		{"none to have", Limits{IRD: 0, ORD: 8}, Data{IRD: 8, ORD: 1}, 0, 8, transport.MPAInsufficientIRD},
	} {
		agreed, fault := Conclude(c.ours, c.reply)
		require.Equal(t, Agreed{IRD: c.ird, ORD: c.ord}, agreed, c.name)
		requireCode(t, c.wantFault, fault, c.name)
	}
}

func requireCode(t *testing.T, want transport.Code, fault *transport.Fault, what string) {
	t.Helper()
	if want == 0 {
		require.Nil(t, fault, what)
		return
	}
	require.NotNil(t, fault, what)
	require.Equal(t, want, fault.Code, what)
}

func TestBothDepthsZeroIsNoAnswer(t *testing.T) {
	agreed, fault := Conclude(Limits{IRD: 16, ORD: 16, RTR: transport.RTRWrite | transport.RTRRead}, Data{PeerToPeer: true, RTR: transport.RTRRead})
	require.Nil(t, fault, "siw without depths of its own is tolerated")
	require.Equal(t, Agreed{IRD: 16, ORD: 16, RTR: transport.RTRRead}, agreed)

	agreed, fault = Conclude(Limits{IRD: 16, ORD: 16, RTR: transport.RTRWrite | transport.RTRRead, Strict: true}, Data{PeerToPeer: true, RTR: transport.RTRWrite | transport.RTRRead})
	require.Nil(t, fault, "a strict initiator believes it")
	require.Equal(t, Agreed{IRD: 16, RTR: transport.RTRWrite}, agreed)
	_, fault = Conclude(Limits{IRD: 16, ORD: 16, RTR: transport.RTRWrite | transport.RTRRead, Strict: true}, Data{PeerToPeer: true, RTR: transport.RTRRead})
	requireCode(t, transport.MPANoRTR, fault, "and sends no Read, not as RTR either")
}

func TestMPA2_14_37_InsufficientIRDIsCode6(t *testing.T) {
	_, fault := Conclude(Limits{IRD: 4, ORD: 4, RTR: transport.RTRWrite}, Data{PeerToPeer: true, RTR: transport.RTRWrite, IRD: 4, ORD: 5})
	requireCode(t, transport.MakeCode(2, 0, 6), fault, "the responder's ORD is above our IRD")
}

func TestMPA2_16_ResponderLeavesIRDToTheULP(t *testing.T) {
	reply, agreed := Respond(Data{IRD: 4, ORD: Unset}, Limits{IRD: 7, ORD: 9, RTR: all})
	require.Equal(t, uint16(Unset), reply.IRD, "Request.ORD 0x3FFF is answered by Reply.IRD 0x3FFF")
	require.Equal(t, uint16(4), reply.ORD, "the other depth is negotiated as ever")
	require.Equal(t, 7, agreed.IRD, "the IRD does not change")
}

func TestMPA2_17_ResponderLeavesORDToTheULP(t *testing.T) {
	reply, agreed := Respond(Data{IRD: Unset, ORD: 4}, Limits{IRD: 7, ORD: 9, RTR: all})
	require.Equal(t, uint16(Unset), reply.ORD, "Request.IRD 0x3FFF is answered by Reply.ORD 0x3FFF")
	require.Equal(t, uint16(7), reply.IRD, "the other depth is told as ever")
	require.Equal(t, 9, agreed.ORD, "the ORD does not change")
}

func TestMPA2_18_InitiatorKeepsORD(t *testing.T) {
	agreed, fault := Conclude(Limits{IRD: 7, ORD: 9}, Data{IRD: Unset, ORD: 3})
	require.Nil(t, fault)
	require.Equal(t, 9, agreed.ORD, "Reply.IRD 0x3FFF changes nothing")
}

func TestMPA2_19_InitiatorKeepsIRD(t *testing.T) {
	agreed, fault := Conclude(Limits{IRD: 7, ORD: 9}, Data{IRD: 3, ORD: Unset})
	require.Nil(t, fault, "0x3FFF is no depth that our IRD would have to hold")
	require.Equal(t, Agreed{IRD: 7, ORD: 3}, agreed)
}

func TestMPA2_21_22_23_ResponderNamesAMatchingRTR(t *testing.T) {
	for _, c := range []struct{ offered, taken, want transport.RTR }{
		{transport.RTRWrite, all, transport.RTRWrite},
		{transport.RTRRead, all, transport.RTRRead},
		{transport.RTRSend, all, transport.RTRSend},
		{transport.RTRWrite | transport.RTRRead, all, transport.RTRWrite},
		{transport.RTRSend | transport.RTRRead, all, transport.RTRRead},
		{all, transport.RTRSend | transport.RTRRead, transport.RTRRead},
		{all, transport.RTRSend, transport.RTRSend},
	} {
		reply, agreed := Respond(Data{PeerToPeer: true, RTR: c.offered, IRD: 1}, Limits{IRD: 1, RTR: c.taken})
		require.True(t, reply.PeerToPeer, "A is copied from the Request")
		require.Equal(t, c.want, reply.RTR, "named of %v by one that takes %v", c.offered, c.taken)
		require.Equal(t, c.want, agreed.RTR, "and expected")
	}
	reply, _ := Respond(Data{IRD: 1}, Limits{IRD: 1, RTR: all})
	require.False(t, reply.PeerToPeer, "A is copied from the Request")
}

func TestMPA2_24_ExtraRTRsInTheReplyDoNoHarm(t *testing.T) {
	agreed, fault := Conclude(Limits{ORD: 1, RTR: transport.RTRRead}, Data{PeerToPeer: true, RTR: all, IRD: 1})
	require.Nil(t, fault)
	require.Equal(t, transport.RTRRead, agreed.RTR, "the one that we can send")
}

func TestMPA2_25_ResponderNamesItsOwnRTRWhenNoneMatches(t *testing.T) {
	for _, offered := range []transport.RTR{0, transport.RTRSend, transport.RTRRead} {
		reply, agreed := Respond(Data{PeerToPeer: true, RTR: offered, IRD: 1}, Limits{IRD: 1, RTR: transport.RTRWrite})
		require.Equal(t, transport.RTRWrite, reply.RTR, "one of our own for an offer of %v", offered)
		require.Equal(t, transport.RTR(0), agreed.RTR, "none can be expected")
	}
}

func TestMPA2_26_InitiatorChoosesAmongTheCommonRTRs(t *testing.T) {
	for _, c := range []struct{ ours, reply, want transport.RTR }{
		{all, all, transport.RTRWrite},
		{all, transport.RTRSend | transport.RTRRead, transport.RTRRead},
		{all, transport.RTRSend, transport.RTRSend},
		{transport.RTRWrite | transport.RTRRead, transport.RTRRead, transport.RTRRead},
	} {
		agreed, fault := Conclude(Limits{ORD: 1, RTR: c.ours}, Data{PeerToPeer: true, RTR: c.reply, IRD: 1})
		require.Nil(t, fault)
		require.Equal(t, c.want, agreed.RTR, "chosen of %v by one that can send %v", c.reply, c.ours)
	}
}

func TestMPA2_27_37_NoCommonRTRIsCode7(t *testing.T) {
	for _, c := range []struct {
		what  string
		ours  Limits
		reply Data
	}{
		{"different kinds", Limits{ORD: 1, RTR: transport.RTRWrite}, Data{PeerToPeer: true, RTR: transport.RTRSend, IRD: 1}},
		{"no kind at all", Limits{ORD: 1, RTR: all}, Data{PeerToPeer: true, IRD: 1}},
		{"a Read without an IRD", Limits{IRD: 1, ORD: 1, RTR: transport.RTRWrite | transport.RTRRead}, Data{PeerToPeer: true, RTR: transport.RTRRead, ORD: 1}},
	} {
		_, fault := Conclude(c.ours, c.reply)
		requireCode(t, transport.MakeCode(2, 0, 7), fault, c.what)
	}
}

func TestMPA2_12_RefusalTellsWhatWouldHaveBeenNeeded(t *testing.T) {
	req := Data{PeerToPeer: true, RTR: transport.RTRRead, IRD: 3, ORD: 5}
	for _, c := range []struct{ ird, ord, wantIRD, wantORD int }{
		{-1, -1, 5, 3}, // no fault is found with the depths
		{-1, 8, 5, 8},
		{2, -1, 2, 3},
		{0, 1 << 20, 0, MaxDepth},
		{-1, 0, 5, 0},
	} {
		reply := Refuse(req, Limits{IRD: c.ird, ORD: c.ord, RTR: all})
		require.Equal(t, Data{PeerToPeer: true, RTR: transport.RTRRead, IRD: uint16(c.wantIRD), ORD: uint16(c.wantORD)}, reply, "%+v", c)
	}
}

func TestMPA2_18_19_InitiatorMayLeaveTheDepthsToTheULP(t *testing.T) {
	ours := Limits{IRD: 7, ORD: 9, RTR: transport.RTRWrite | transport.RTRRead, Untold: true}
	req := Request(ours)
	require.Equal(t, Data{PeerToPeer: true, RTR: transport.RTRWrite | transport.RTRRead, IRD: Unset, ORD: Unset}, req)
	reply, theirs := Respond(req, Limits{IRD: 2, ORD: 3, RTR: all})
	require.Equal(t, Data{PeerToPeer: true, RTR: transport.RTRWrite, IRD: Unset, ORD: Unset}, reply)
	require.Equal(t, Agreed{IRD: 2, ORD: 3, RTR: transport.RTRWrite}, theirs)
	agreed, fault := Conclude(ours, reply)
	require.Nil(t, fault)
	require.Equal(t, Agreed{IRD: 7, ORD: 9, RTR: transport.RTRWrite}, agreed, "each keeps its own")

	req = Request(Limits{IRD: 7, RTR: transport.RTRRead, Untold: true})
	require.False(t, req.PeerToPeer, "there is no Read without an ORD, told or not")
}
