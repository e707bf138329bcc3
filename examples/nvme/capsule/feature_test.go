package capsule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNVME_52_Features(t *testing.T) {
	set := goldenCommand(t, "set-features-0b")
	require.Equal(t, SetFeatures{FID: FeatureAsyncEvents, Value: NoticeDiscovery}, ParseSetFeatures(&set))
	get := goldenCommand(t, "get-features-0f")
	require.Equal(t, GetFeatures{NSID: BroadcastNSID, FID: FeatureKATO}, ParseGetFeatures(&get))

	m := SetFeatures{NSID: 5, FID: 0x81, Save: true, Value: 0x01020304}
	set = m.SQE(1, NullSGL())
	require.Equal(t, uint32(0x80000081), set.CDW10)
	require.Equal(t, m, ParseSetFeatures(&set))
	require.False(t, ParseSetFeatures(&SQE{CDW10: 0x7FFFFF00}).Save)
	g := GetFeatures{NSID: 5, FID: 0x06, Select: 7, Value: 1}
	get = g.SQE(1, NullSGL())
	require.Equal(t, uint32(0x706), get.CDW10)
	require.Equal(t, g, ParseGetFeatures(&get))
	require.Equal(t, uint32(0x900)&NoticeNamespaces, uint32(0x100))
}

func TestNVME_50_QueueCounts(t *testing.T) {
	c := goldenCommand(t, "set-features-07")
	q := ParseQueueCount(ParseSetFeatures(&c).Value)
	require.Equal(t, Queues(1), q)
	require.Equal(t, 1, q.Pairs())
	require.Equal(t, uint32(0x007f007f), Queues(128).Value())
	require.Equal(t, QueueCount{NSQ: 4, NCQ: 2}, ParseQueueCount(0x00020004))
	require.Equal(t, uint32(0x00020004), QueueCount{NSQ: 4, NCQ: 2}.Value())
	require.Equal(t, 3, QueueCount{NSQ: 4, NCQ: 2}.Pairs())
	require.Equal(t, 2, QueueCount{NSQ: 1, NCQ: 2}.Pairs())
	require.Equal(t, Success, QueueCount{0xFFFE, 0xFFFE}.Check())
	require.Equal(t, StatusInvalidField, QueueCount{0xFFFF, 0}.Check())
	require.Equal(t, StatusInvalidField, QueueCount{0, 0xFFFF}.Check())
}

func TestNVME_53_AsyncEvents(t *testing.T) {
	require.Equal(t, uint32(0x00040002), EventNamespaceChanged.DW0())
	require.Equal(t, uint32(0x0070F002), EventDiscoveryChanged.DW0())
	for _, e := range []AsyncEvent{EventNamespaceChanged, EventDiscoveryChanged, {Type: 7, Info: 0xAB, LID: 0xCD}} {
		require.Equal(t, e, ParseAsyncEvent(e.DW0()))
	}
	require.Equal(t, uint8(1), ParseAsyncEvent(0xFFFFFFF9).Type)
}

func TestNVME_57_Abort(t *testing.T) {
	m := Abort{SQID: 0x0102, CID: 0xF304}
	c := m.SQE(6)
	require.Equal(t, unhex("0201 04f3"), c.Append(nil)[40:44])
	require.Equal(t, m, ParseAbort(&c))
	require.Equal(t, OpAbort, c.Opcode)
	require.Equal(t, 1, AbortFailed)
}
