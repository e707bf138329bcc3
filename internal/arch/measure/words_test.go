package measure

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordsOfAnIdentifier(t *testing.T) {
	for id, want := range map[string]string{
		"":                 "",
		"queue":            "queue",
		"sendQueue":        "send Queue",
		"QPHasNo_queue":    "QP Has No queue",
		"RDMAWrite":        "RDMA Write",
		"TestRFC_12_AByte": "Test RFC 12 A Byte",
		"a2B":              "a2 B",
		"queue_linux.go":   "queue linux go",
		"0001-a-file.md":   "0001 a file md",
	} {
		require.Equal(t, want, Words(id))
	}
}

const goSource = `// Package p has a queue, which
// Queues use, and sendQueue.
package p

/* A bucket. */
// It is a Queue.

// Another queue.
type Queue struct {
	sendQueue, queueing int // queues
}

var x = "the queue\nof " + ` + "`queue`" + `

func TestThatHasAQueue(q Queue) { q.sendQueue = 1 }
`

func TestFindWord(t *testing.T) {
	text := GoText("x/queue_linux.go", []byte(goSource))
	for word, want := range map[string][]int{
		`all queues?`:                   {1, 1, 9, 15, 1, 1, 5, 8, 10, 13, 13},
		`names queue`:                   {1, 1, 9, 15},
		`names queue \w+`:               {1},
		`names \w+ queue`:               {1, 15},
		`names \w+ queue !! test .*`:    {1},
		`exported queue`:                {9},
		`prose queues?`:                 {1, 1, 5, 8, 10, 13, 13},
		`prose queues? !! the queue of`: {1, 1, 5, 8, 10, 13},
		`prose which queues`:            {1},
		`prose bucket. \*/`:             nil,
		`prose a bucket`:                {5},
		`prose ueue`:                    nil,
		`names that has`:                {15},
	} {
		w, err := ParseWord(word)
		require.NoError(t, err, word)
		var lines []int
		for _, p := range w.Find(text) {
			lines = append(lines, p.Line)
		}
		require.Equal(t, want, lines, word)
	}
}

func TestFindWordInADocument(t *testing.T) {
	text := MarkdownText("docs/a-queue.md", []byte("# The queue\n\nOne\nqueue.\n\n\nThe sendQueue.\n"))
	w, err := ParseWord(`all queue`)
	require.NoError(t, err)
	require.Equal(t, []Phrase{
		{Line: 1, Text: "a queue md"},
		{Line: 6, Text: "send queue"},
		{Line: 1, Text: "# the queue"},
		{Line: 3, Text: "one queue."},
	}, w.Find(text))
}

func TestWordThatIsNoPattern(t *testing.T) {
	for _, s := range []string{``, `queue`, `some queue`, `all (queue`, `all queue !! (the`} {
		_, err := ParseWord(s)
		require.Error(t, err, s)
	}
}
