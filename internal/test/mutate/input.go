package mutate

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
)

// maxInput bounds a mutation's length: the limits of larger files have tests of
// their own.
const maxInput = 64 << 10

// mutated is one input of the corpus with a few changes.
func mutated(r *rand.Rand, corpus [][]any) []any {
	args := slices.Clone(corpus[r.IntN(len(corpus))])
	other := corpus[r.IntN(len(corpus))]
	for range 1 + r.IntN(4) {
		i := r.IntN(len(args))
		args[i] = change(r, args[i], other[i])
	}
	return args
}

// change is another value of the same type.
func change(r *rand.Rand, value, other any) any {
	switch v := value.(type) {
	case []byte:
		return bytesOf(r, v, other.([]byte))
	case string:
		return string(bytesOf(r, []byte(v), []byte(other.(string))))
	case bool:
		return !v
	}
	out := reflect.New(reflect.TypeOf(value)).Elem()
	n := r.Uint64() >> r.IntN(64)
	if out.CanUint() {
		out.SetUint(n & (1<<out.Type().Bits() - 1))
	} else {
		out.SetInt(int64(n) >> (64 - out.Type().Bits()))
	}
	return out.Interface()
}

// bytesOf changes a text: what fuzzers do, and what configuration is hostile with.
func bytesOf(r *rand.Rand, text, other []byte) []byte {
	text = slices.Clone(text)
	from, to := span(r, len(text))
	switch r.IntN(9) {
	case 0: // bits
		for range 1 + r.IntN(8) {
			if len(text) > 0 {
				text[r.IntN(len(text))] ^= 1 << r.IntN(8)
			}
		}
	case 1: // removed
		text = slices.Delete(text, from, to)
	case 2: // once more elsewhere
		text = slices.Insert(text, r.IntN(len(text)+1), text[from:to]...)
	case 3: // many times
		text = slices.Replace(text, from, to, []byte(strings.Repeat(string(text[from:to]), 1+r.IntN(200)))...)
	case 4: // of another input
		a, b := span(r, len(other))
		text = slices.Replace(text, from, to, other[a:b]...)
	case 5: // cut off
		text = text[:from]
	case 6: // a word that means something
		text = slices.Insert(text, from, []byte(words()[r.IntN(len(words()))])...)
	case 7: // nested
		open, closed := pair(r)
		n := 1 + r.IntN(2000)
		text = slices.Concat(text[:from], []byte(strings.Repeat(open, n)), text[from:to], []byte(strings.Repeat(closed, n)), text[to:])
	default: // random bytes
		for range 1 + r.IntN(16) {
			text = slices.Insert(text, r.IntN(len(text)+1), byte(r.UintN(256)))
		}
	}
	return text[:min(len(text), maxInput)]
}

func span(r *rand.Rand, n int) (from, to int) {
	from = r.IntN(n + 1)
	return from, from + r.IntN(min(n-from, 64)+1)
}

func words() []string {
	return []string{
		"-1", "0", "2147483648", "18446744073709551616", "1e999", "\x00", "\xff\xfe", "\u202e", "\x1b[2J", "${", "${a:${a}}", "}", "#{",
		"---\n", "\n", "\r\n", ": ", "- ", "&a [*a]", "*a", "!!binary ", "? ", "<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "<![CDATA[", "]]>", "\\u0", "\\\n", "=",
		"spring.config.import=", "spring.profiles.group.a=a", "spring.config.activate.on-profile=!", "server.port=", "file:", "configtree:/", "optional:", "PK\x01\x02", "PK\x05\x06", "@",
	}
}

func pair(r *rand.Rand) (open, closed string) {
	all := []string{"(", ")", "[", "]", "{", "}", "${", "}", "<a>", "</a>", "!", "", "\"", "\"", "&", "|", " ", ""}
	i := r.IntN(len(all)/2) * 2
	return all[i], all[i+1]
}
