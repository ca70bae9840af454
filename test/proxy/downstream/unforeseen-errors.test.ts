import { expect, it, onTestFinished, vi } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import { Transaction } from '../../../src/proxy/transaction/transaction.ts';
import { writeBlock } from '../../wire/http2/field-block.ts';
import { Flag, frame, PREFACE, Type } from '../../wire/http2/frames.ts';
import { requestFields } from '../../wire/http2/raw-http2-client.ts';
import { message } from '../../wire/messages.ts';
import { connectBare } from './http2/bare-app.ts';

const SECRET = 'the body says what nobody else may know';
const HTTP1 = Buffer.from(
  message('POST /api HTTP/1.1', ['Host: app.test', `Content-Length: ${SECRET.length}`], SECRET),
);
const HTTP2 = Buffer.concat([
  PREFACE,
  frame(Type.SETTINGS, 0, 0),
  frame(Type.HEADERS, Flag.END_HEADERS, 1, writeBlock(requestFields('POST', '/api'))),
  frame(Type.DATA, Flag.END_STREAM, 1, SECRET),
]);

/** What was answered and logged where a body could not be taken for this reason. */
async function failWith(error: Error, octets: Buffer) {
  vi.spyOn(Transaction.prototype, 'takeBody').mockImplementation(() => {
    throw error;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const { lines, send, sink } = connectBare();
  await send(octets);
  return { answer: sink.text, lines };
}

it.each([
  ['HTTP/1.1', HTTP1],
  ['HTTP/2', HTTP2],
])(
  'an unexpected error while a request over %s is read is logged without any part of the request',
  async (_, octets) => {
    const { answer, lines } = await failWith(new TypeError('unforeseen'), octets);
    expect(answer).toContain('internal');
    expect(answer).not.toContain('unforeseen');
    const [line = '', ...others] = lines;
    expect(JSON.parse(line)).toMatchObject({
      level: 'warn',
      route: 'none',
      error: 'internal',
      cause: 'unforeseen',
    });
    expect(others).toEqual([]);
    expect(line).not.toContain('nobody else');
  },
);

it.each([
  ['HTTP/1.1', HTTP1],
  ['HTTP/2', HTTP2],
])('an error that the app has to correct is not logged, over %s', async (_, octets) => {
  const { answer, lines } = await failWith(
    new SidecarError('request_too_large', 'more than it may be'),
    octets,
  );
  expect(answer).toContain('request_too_large');
  expect(lines).toEqual([]);
});
