import { expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { Flag } from '../http2/frames.ts';
import { connectHttp2 } from '../http2/raw-http2-client.ts';
import { startSidecar } from '../sidecar.ts';
import { type Frame, frame, startFrames, TYPE } from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

const NEVER_INDEXED = 0x10;
const WITHOUT_INDEXING = 0x00;
const WHOLE = Flag.END_HEADERS | Flag.END_STREAM;

/** A field as a literal with a literal name. */
function literal(mark: number, name: string, value: string): Buffer {
  const [first, second] = [Buffer.from(name), Buffer.from(value)];
  return Buffer.concat([Buffer.from([mark, first.length]), first, Buffer.from([second.length]), second]);
}

/** How a field that came is marked. */
function markOf({ payload }: Pick<Frame, 'payload'>, name: string): number | undefined {
  const at = payload.indexOf(name);
  expect(at, name).toBeGreaterThan(1);
  return payload[at - 2];
}

it('a field marked as never indexed keeps that mark in both directions (RFC 7541 §6.2.3)', async () => {
  const upstream = await startFrames();
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
  const client = await connectHttp2(sidecar);
  const pseudo = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'app.test'],
  ].map(([name = '', value = '']) => literal(WITHOUT_INDEXING, name, value));
  const key = literal(NEVER_INDEXED, 'x-key', 'secret');
  const other = literal(WITHOUT_INDEXING, 'x-other', 'known');
  client.send(
    frame(TYPE.HEADERS, Flag.END_HEADERS, 1, Buffer.concat([...pseudo, key, other])),
    frame(TYPE.HEADERS, WHOLE, 1, literal(NEVER_INDEXED, 'x-sum', 'secret')),
  );

  const connection = await upstream.connection();
  const head = await connection.next(TYPE.HEADERS);
  expect(markOf(head, 'x-key')).toBe(NEVER_INDEXED);
  expect(markOf(head, 'x-other')).toBe(WITHOUT_INDEXING);
  expect(markOf(await connection.next(TYPE.HEADERS), 'x-sum')).toBe(NEVER_INDEXED);

  const section = (status: string) =>
    Buffer.concat([literal(WITHOUT_INDEXING, ':status', status), key, other]);
  connection.send(
    frame(TYPE.HEADERS, Flag.END_HEADERS, head.streamId, section('103')),
    frame(TYPE.HEADERS, Flag.END_HEADERS, head.streamId, section('200')),
    frame(TYPE.HEADERS, WHOLE, head.streamId, literal(NEVER_INDEXED, 'x-sum', 'secret')),
  );
  const sections = () => client.frames.filter(({ type }) => type === TYPE.HEADERS);
  await until(() => sections().length === 3);
  const [interim, final, trailers] = sections() as [Frame, Frame, Frame];
  for (const came of [interim, final]) {
    expect(markOf(came, 'x-key')).toBe(NEVER_INDEXED);
    expect(markOf(came, 'x-other')).toBe(WITHOUT_INDEXING);
  }
  expect(markOf(trailers, 'x-sum')).toBe(NEVER_INDEXED);
});
