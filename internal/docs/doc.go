// Package docs checks the documents of the module, by tests alone.
//
//   - Every relative link of a document, and every anchor, leads to what there is.
//   - Every block of Go in a document compiles, with testdata/prelude.txt in front where it is no whole file. A
//     block whose fence has "file=PATH", relative to the document, is a quotation of that file, and the quotations
//     of one file in one document are all of it.
//   - Every name such as QP.Send that a document has in code is one of the root package's.
//   - Every name of its own package that a comment has, in brackets or as Type.Member, is there.
//   - docs/README.md leads to every page.
//   - docs/troubleshooting.md has every error, Terminate code, status and event, and
//     docs/porting-libibverbs.md every verb in testdata/verbs.txt, every constant in testdata/enums.txt and every
//     member in testdata/members.txt.
//   - The misspellings of testdata/misspellings.txt occur in no document and no comment.
//
// The commands of documents are checked in cmd/iwarp, and their words in internal/arch.
package docs
