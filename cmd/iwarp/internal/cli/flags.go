package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goiwarp/iwarp/internal/errtext"
)

// renamed is the prefix of annotations that hold the former name of a flag.
const renamed = "renamed -"

// Renamed records that a flag with one dash has another name now: text is what to write.
func Renamed(cmd *cobra.Command, old, text string) {
	if cmd.Annotations == nil {
		cmd.Annotations = make(map[string]string)
	}
	cmd.Annotations[renamed+old] = text
}

// checkForm refuses long flags with one dash, which would be taken for several flags of one letter.
func checkForm(root *cobra.Command, args []string) (*cobra.Command, error) {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return cmd, UsageError(errtext.OneLine(err.Error()))
	}
	cmd.InitDefaultHelpFlag()
	for _, a := range rest {
		if a == "--" {
			break
		}
		if len(a) < 2 || a[0] != '-' || a[1] == '-' {
			continue
		}
		name, _, _ := strings.Cut(a[1:], "=")
		if now := newForm(cmd, name); now != "" {
			return cmd, Usagef("-%s is written %s", name, now)
		}
	}
	return cmd, nil
}

// newForm returns how to write what was a flag with one dash; "" if it never was one.
func newForm(cmd *cobra.Command, name string) string {
	if now := cmd.Annotations[renamed+name]; now != "" {
		return now
	}
	if f := cmd.Flag(name); f != nil && len(name) > 1 {
		return "--" + f.Name
	}
	return ""
}

// flagError says in one line what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		if s := unknown.GetSpecifiedShortnames(); s != "" {
			name = "-" + s
		}
		return Usagef("unknown flag %s: %s", name, suggestion(cmd, strings.TrimLeft(name, "-")))
	case errors.As(err, &missing):
		_, usage := pflag.UnquoteUsage(missing.GetFlag())
		return Usagef("%s needs a value: %s", shown(missing.GetFlag()), usage)
	case errors.As(err, &invalid):
		return Usagef("%s %q: %s", shown(invalid.GetFlag()), invalid.GetValue(), wanted(invalid))
	}
	return UsageError(err.Error())
}

// shown returns the name of a flag as a user writes it.
func shown(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand + ", --" + f.Name
	}
	return "--" + f.Name
}

// wanted says what the value of a flag must be.
func wanted(e *pflag.InvalidValueError) string {
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		return "want a whole number"
	case "uint", "uint64":
		return "want a whole number that is not negative"
	case "float64":
		return "want a number"
	case "bool":
		return "want true or false"
	case "duration":
		return "want a time such as 50us, 100ms or 2s"
	}
	return errors.Unwrap(e).Error()
}

// suggestion names the flags that may have been meant, or says where to find all.
func suggestion(cmd *cobra.Command, name string) string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	if near := all.SuggestionsFor(name); len(near) > 0 {
		return fmt.Sprintf("is --%s meant?", strings.Join(near[:min(len(near), 3)], " or --"))
	}
	return fmt.Sprintf("%s --help lists the flags", cmd.CommandPath())
}

// Args accepts from least to most arguments.
func Args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > most && cmd.HasSubCommands():
			return unknownCommand(cmd, args[0])
		case len(args) > most:
			return Usagef("unexpected argument %q; usage: %s", args[most], cmd.UseLine())
		case len(args) < least:
			return Usagef("an argument is missing; usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// NoArgs accepts no argument.
var NoArgs = Args(0, 0)

func unknownCommand(cmd *cobra.Command, name string) error {
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return Usagef("unknown command %q: is %q meant?", name, cmd.CommandPath()+" "+near[0])
	}
	return Usagef("unknown command %q: %s --help lists the commands", name, cmd.CommandPath())
}

// Hide omits flags from the help: those with which a command starts itself.
func Hide(cmd *cobra.Command, names ...string) {
	for _, n := range names {
		cmd.Flags().Lookup(n).Hidden = true
	}
}

// refuseUnknown changes cobra's commands help and completion: they refuse unknown arguments, as all other commands do.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if found, rest, _ := root.Find(args); len(rest) > 0 {
					return unknownCommand(found, rest[0])
				}
				return nil
			}
		case "completion":
			cmd.Args = NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				return Usagef("the name of a shell is missing: %s --help lists them", cmd.CommandPath())
			}
			for _, shell := range cmd.Commands() {
				shell.Args = NoArgs
			}
		}
	}
}
