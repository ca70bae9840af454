import { expect, it } from 'vitest';
import type { UpstreamStream } from '../../../src/proxy/streams/contract.ts';
import { bodyTooLarge, RequestBody } from '../../../src/proxy/transaction/replayable-body.ts';

/** What a stream is told and sent. */
function receiver() {
  const told: string[] = [];
  const stream = {
    data: (bytes: Buffer) => told.push(bytes.toString()),
    end: (trailers: readonly string[], nowMs: number) => told.push(`ended ${trailers} at ${nowMs}`),
    touch: () => told.push('touched'),
  } as unknown as UpstreamStream;
  return { told, stream };
}

const options = { mayOutgrow: true, replayBytes: 5, maxBytes: 0 };
const bytes = (text: string) => Buffer.from(text);

it('a replayable body passes bytes to its receiver as they come, and reports progress and end', () => {
  const body = new RequestBody(options);
  const { told, stream } = receiver();
  body.take(bytes('on'));
  body.sendTo(stream, 1);
  expect(told).toEqual(['on', 'touched']);
  body.take(bytes('e'));
  body.end(['x', 'y'], 7);
  expect(told).toEqual(['on', 'touched', 'e', 'touched', 'ended x,y at 7']);
});

it('a replayable body can be sent from its beginning to another receiver while it is whole', () => {
  const body = new RequestBody(options);
  const [first, second] = [receiver(), receiver()];
  body.sendTo(first.stream, 1);
  body.take(bytes('12345'));
  body.detach();
  expect(body.whole).toBe(true);
  body.end([], 2);
  expect(first.told).toEqual(['touched', '12345', 'touched']);
  body.sendTo(second.stream, 3);
  expect(second.told).toEqual(['12345', 'ended  at 3']);
});

it('a replayable body cannot be repeated after it exceeded the limit or was settled', () => {
  const body = new RequestBody(options);
  const { told, stream } = receiver();
  body.sendTo(stream, 1);
  body.take(bytes('12345'));
  body.take(bytes('6'));
  expect(body.whole).toBe(false);
  expect(told).toEqual(['touched', '12345', 'touched', '6', 'touched']);
  const settled = new RequestBody(options);
  settled.settle();
  expect(settled.whole).toBe(false);
});

it('a replayable body without its beginning goes to no other receiver', () => {
  const body = new RequestBody(options);
  body.sendTo(receiver().stream, 1);
  body.take(bytes('123456'));
  const { told, stream } = receiver();
  expect(() => body.sendTo(stream, 2)).toThrow(expect.objectContaining({ code: 'internal' }));
  expect(told).toEqual([]);
});

it('a replayable body loses nothing while it has no receiver', () => {
  const body = new RequestBody(options);
  body.take(bytes('12345'));
  expect(() => body.take(bytes('6'))).toThrow(expect.objectContaining({ code: 'internal' }));
});

it('a replayable body may exceed the replay limit until it is complete', () => {
  const body = new RequestBody(options);
  expect(body.mayOutgrow).toBe(true);
  body.end([], 1);
  expect(body.mayOutgrow).toBe(false);
  expect(new RequestBody({ ...options, mayOutgrow: false }).mayOutgrow).toBe(false);
});

it('a replayable body over the body limit is refused', () => {
  const body = new RequestBody({ ...options, maxBytes: 5 });
  body.sendTo(receiver().stream, 1);
  body.take(bytes('12345'));
  expect(() => body.take(bytes('6'))).toThrow(bodyTooLarge(5));
  expect(bodyTooLarge(5)).toMatchObject({
    code: 'request_too_large',
    message: 'the request body is larger than 5 bytes',
  });
});
