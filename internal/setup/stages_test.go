package setup

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTracedStages(t *testing.T) {
	type own uint8
	errTest := errors.New("of the test")
	var log []string
	var refuse error
	trace := Traced(func(_ context.Context, s own) error {
		log = append(log, fmt.Sprint("enter ", s))
		return refuse
	}, func(s own, err error) { log = append(log, fmt.Sprint("leave ", s, " ", err)) }, func(err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("an error %w", err)
	})
	require.NoError(t, trace.Run(t.Context(), StageDial, func() error { return nil }))
	require.Equal(t, errTest, trace.Run(t.Context(), StageReply, func() error { return errTest }))
	refuse = errTest
	require.Equal(t, errTest, trace.Run(t.Context(), StageReady, func() error { panic("not run") }))
	require.Equal(t, []string{"enter 1", "leave 1 <nil>", "enter 4", "leave 4 an error of the test", "enter 6"}, log)

	none := Traced[own](nil, nil, nil)
	require.Equal(t, errTest, none.Run(t.Context(), StageQP, func() error { return errTest }))
	require.Equal(t, "confirm", StageConfirm.String())
	require.Equal(t, "unknown stage", (StageReady + 1).String())
}
