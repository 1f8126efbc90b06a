package term

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// StatusStyle is how what belongs to a status is coloured.
func StatusStyle(st model.Status) Style {
	switch st {
	case model.StatusOK:
		return Good
	case model.StatusWarning, model.StatusSaturated:
		return Warn
	default:
		return Bad
	}
}

// badgeStyle is the same as a block.
func badgeStyle(st model.Status) Style {
	switch st {
	case model.StatusOK:
		return BadgeGood
	case model.StatusWarning, model.StatusSaturated:
		return BadgeWarn
	default:
		return BadgeBad
	}
}

// Badge is a coloured block, or just the word.
func (s *Screen) Badge(st model.Status) Span {
	word := statusWord(st)
	if s.Color {
		word = " " + word + " "
	}
	return Span{word, badgeStyle(st)}
}

// statusWord is a status on a screen.
func statusWord(st model.Status) string {
	if st == model.StatusLosing {
		return "LOSING CLIENTS"
	}
	return strings.ToUpper(st.String())
}

// StatusNamed is the status of that name in a document; ok where there is none.
func StatusNamed(name string) model.Status {
	for st := model.StatusOK; st < model.NumStatuses; st++ {
		if st.String() == name {
			return st
		}
	}
	return model.StatusOK
}
