// Package shares divides what strangers use together: places of which whoever
// holds most gives one up, turns that go round by owner, and a ledger of what was
// refused or taken away. An owner is a client's address, a user or a network
// namespace, as a text.
package shares
