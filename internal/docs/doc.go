// Package docs checks the documents of the module. It consists only of tests.
//
//   - Every relative link of a document, and every anchor, leads to an existing target.
//   - Every block of Go in a document compiles, preceded by testdata/prelude.txt if it is not a whole file. A
//     block whose fence contains "file=PATH", relative to the document, quotes that file, and the quotations
//     of one file in one document are all of it.
//   - Every name such as QP.Send that a document contains in code exists in the root package.
//   - Every name of its own package that a comment contains, in brackets or as Type.Member, exists.
//   - docs/README.md leads to every page.
//   - docs/troubleshooting.md contains every error, Terminate code, status and event, and
//     docs/porting-libibverbs.md every verb in testdata/verbs.txt, every constant in testdata/enums.txt and every
//     member in testdata/members.txt.
//   - The misspellings of testdata/misspellings.txt occur in no document and no comment.
//
// The commands of documents are checked in cmd/iwarp, and their words in internal/arch.
package docs
