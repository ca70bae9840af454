import type {
  Http2Outlet,
  LeavingResponse,
  WaitingResponse,
} from '../../../../src/proxy/downstream/http2/connection-writer.ts';
import type { ConnectionStream } from '../../../../src/proxy/downstream/http2/stream.ts';
import { ErrorCode } from '../../../../src/proxy/http2/errors.ts';

/** The way out of a connection, on which all that leaves is written down, and which allows what the test says. */
export function fakeOutlet() {
  const written: string[] = [];
  const waiting = new Set<WaitingResponse>();
  const allowed = { window: 1e9, room: true };
  const outlet = {
    get room() {
      return allowed.room;
    },
    sendable: () => allowed.window,
    sendFields(_stream: unknown, fields: readonly string[], last: boolean, neverIndexed?: readonly string[]) {
      const secret = neverIndexed === undefined ? '' : ` never indexed ${neverIndexed}`;
      written.push(`fields ${fields}${secret}${last ? ' last' : ''}`);
    },
    sendData(_stream: unknown, data: Buffer, last: boolean) {
      allowed.window -= data.length;
      written.push(`data ${data}${last ? ' last' : ''}`);
    },
    consume(_stream: unknown, bytes: number) {
      if (bytes > 0) written.push(`gives ${bytes} back`);
    },
    reset(_stream: unknown, code: ErrorCode) {
      const [name] = Object.entries(ErrorCode).find(([, value]) => value === code) ?? [];
      written.push(`reset ${name}`);
    },
    wasUseful: () => void written.push('useful'),
    leaves(answer: LeavingResponse) {
      written.push(`leaves in ${answer.timeoutMs} ms`);
    },
    waitForRoom: (sender: WaitingResponse) => void waiting.add(sender),
    waitNoMore: (sender: WaitingResponse) => void waiting.delete(sender),
    guarded: (act: () => void) => act(),
  } as unknown as Http2Outlet<ConnectionStream>;
  return {
    allowed,
    outlet,
    /** Those who wait for room. */
    waiting,
    written,
    /** What was written since this was last asked. */
    sent: () => written.splice(0),
  };
}
