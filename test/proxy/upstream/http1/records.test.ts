import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type UpstreamUser, WithoutRequest } from '../../../../src/proxy/streams/contract.ts';
import { message } from '../../../wire/messages.ts';
import { connectBare } from './bare-connection.ts';

/** What TLS brings at once (RFC 8446 §5.1), where there is as much. */
const RECORD = 'x'.repeat(16_384);

/** An answer of many records, whose head has come. */
function beginLargeAnswer(wrong: Partial<UpstreamUser> = {}) {
  let came = 0;
  /** How much had come each time that it was passed on. */
  const passedOn: number[] = [];
  const user: UpstreamUser = Object.assign(new WithoutRequest(), {
    onData: (slice) => {
      came += slice.length;
    },
    onReadEnd: () => void passedOn.push(came),
    onEnd: () => void passedOn.push(came),
    onError: () => void passedOn.push(-1),
    ...wrong,
  } satisfies Partial<UpstreamUser>);
  const bare = connectBare(user);
  bare.bring(message('HTTP/1.1 200 OK', ['Content-Length: 1000000']));
  passedOn.length = 0;
  return { ...bare, passedOn };
}

it('TLS records received together are passed on together, at the latest after the read', async () => {
  const { bring, passedOn } = beginLargeAnswer();

  bring(RECORD);
  bring(RECORD);
  bring(RECORD);
  expect(passedOn).toEqual([]);
  await turn();

  expect(passedOn).toEqual([49_152]);
  await turn();
  expect(passedOn).toHaveLength(1);
});

it('at most 64 KiB of TLS records wait for the next one', async () => {
  const { bring, passedOn } = beginLargeAnswer();

  for (let record = 0; record < 9; record++) bring(RECORD);
  expect(passedOn).toEqual([65_536, 131_072]);
  await turn();

  expect(passedOn).toEqual([65_536, 131_072, 147_456]);
});

it('a TLS record that is not full is passed on at once', () => {
  const { bring, passedOn } = beginLargeAnswer();

  bring(RECORD);
  bring('event: 1');

  expect(passedOn).toEqual([16_392]);
});

it('nothing is passed on after the answer failed', async () => {
  const { connection, bring, passedOn } = beginLargeAnswer();

  bring(RECORD);
  connection.socket.emit('close');
  await turn();

  expect(passedOn).toEqual([-1]);
});

it('an error while TLS records are passed on fails the answer and nothing else', async () => {
  const failures: string[] = [];
  let wrong = false;
  const { bring, connection } = beginLargeAnswer({
    onReadEnd() {
      if (wrong) throw new Error('unforeseen');
    },
    onError: (error, delivery) => void failures.push(`${error.code} ${delivery}`),
  });
  wrong = true;

  bring(RECORD);
  await turn();

  expect(failures).toEqual(['internal lost']);
  expect(connection.socket.destroyed).toBe(true);
});
