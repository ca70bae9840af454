import { expect, it } from 'vitest';
import { leakedIn } from './leaked.ts';

const OPAQUE = 'ory_at_7Qw/8+"x"_opaque';

it.each([
  ['as it is', `token ${OPAQUE} obtained`],
  ['in a line of JSON', JSON.stringify({ msg: OPAQUE })],
  ['in a URL', `https://sso.example.com/?token=${encodeURIComponent(OPAQUE)}`],
  ['in Base64', Buffer.from(OPAQUE).toString('base64')],
])('a token that is no JWT is found %s', (_, text) => {
  expect(leakedIn(text, [OPAQUE])).toEqual(['ory_…']);
});

it('any line of a key is found, and a JWT that nobody has kept', () => {
  const key = '-----BEGIN\nMIGHAgEAMBMG\n';
  expect(leakedIn('read MIGHAgEAMBMG', [key])).toEqual(['MIGH…']);
  expect(leakedIn('sent eyJhbGciOiJFUzI1NiJ9.e30', [])).toEqual(['a JWT']);
});

it('nothing is found in what holds nothing', () => {
  expect(leakedIn('{"msg":"token obtained","credential":"default"}', [OPAQUE, '', '\n'])).toEqual([]);
});
