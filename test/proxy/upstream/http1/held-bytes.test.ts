import { expect, it, onTestFinished, vi } from 'vitest';
import { type UpstreamUser, WithoutRequest } from '../../../../src/proxy/streams/contract.ts';
import { message } from '../../../wire/messages.ts';
import { connectBare } from './bare-connection.ts';

/** A connection whose user holds the answer at its head. */
function holdAnswer() {
  let body = '';
  let ended = 0;
  let reusable = 0;
  const user: UpstreamUser = Object.assign(new WithoutRequest(), {
    onResponse: () => bare.connection.holdResponse(),
    onData: (slice) => {
      body += slice.toString('latin1');
    },
    onEnd: () => {
      ended++;
    },
  } satisfies Partial<UpstreamUser>);
  const bare = connectBare(user, () => reusable++);
  return { ...bare, passedOn: () => ({ body, ended, reusable }) };
}

it('an answer in small pieces is copied at most twice while it is held', () => {
  const { connection, bring, passedOn } = holdAnswer();
  const pieces = 20_000;
  bring(message('HTTP/1.1 401 No', [`Content-Length: ${pieces}`]));
  let copied = 0;
  const { copy } = Buffer.prototype;
  const { concat } = Buffer;
  vi.spyOn(Buffer, 'concat').mockImplementation((parts, total) => {
    for (const part of parts) copied += part.length;
    return concat(parts, total);
  });
  vi.spyOn(Buffer.prototype, 'copy').mockImplementation(function (this: Buffer, ...to) {
    const count = copy.apply(this, to);
    copied += count;
    return count;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  for (let piece = 0; piece < pieces; piece++) bring('x');
  expect(passedOn().body).toBe('');

  connection.releaseResponse();

  // Once more by this test, as it is brought.
  expect(copied).toBeLessThanOrEqual(3 * pieces);
  expect(passedOn()).toEqual({ body: 'x'.repeat(pieces), ended: 1, reusable: 1 });
});

it('bytes after the end of an answer in a separate piece make the connection unfit for reuse', () => {
  const { connection, bring, passedOn } = holdAnswer();
  bring(message('HTTP/1.1 401 No', ['Content-Length: 2']));
  bring('no');
  bring('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');

  connection.releaseResponse();

  expect(passedOn()).toEqual({ body: 'no', ended: 1, reusable: 0 });
});
