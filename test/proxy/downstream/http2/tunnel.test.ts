import { expect, it } from 'vitest';
import { Http2Tunnel } from '../../../../src/proxy/downstream/http2/tunnel.ts';
import { ErrorCode } from '../../../../src/proxy/http2/errors.ts';

/** A tunnel, and what its stream and whoever runs it are told. */
function start() {
  const told: string[] = [];
  const tell = (what: string) => void told.push(what);
  const tunnel = new Http2Tunnel({
    write: (chunk) => {
      tell(`write ${chunk}`);
      return true;
    },
    endOutput: () => tell('end output'),
    pause: () => tell('hold'),
    resume: () => tell('proceed'),
    finish: (code) => tell(code === undefined ? 'finish' : `finish ${code}`),
  });
  tunnel.open({
    bytes: (chunk) => tell(`bytes ${chunk}`),
    ended: () => tell('ended'),
    writable: () => tell('writable'),
    closed: (how) => tell(`closed ${how}`),
  });
  return { tunnel, told: () => told.splice(0) };
}

it('a tunnel end of an HTTP/2 stream forwards calls and state in both directions', () => {
  const { tunnel, told } = start();
  expect(told()).toEqual(['proceed']);
  tunnel.bytes(Buffer.from('x'));
  tunnel.writable();
  tunnel.pause();
  tunnel.resume();
  expect(tunnel.write(Buffer.from('y'))).toBe(true);
  tunnel.end();
  expect(told()).toEqual(['bytes x', 'writable', 'hold', 'proceed', 'write y', 'end output']);
});

it('an HTTP/2 tunnel is over when both directions have ended, in either order', () => {
  const app = start();
  app.told();
  app.tunnel.inputEnded();
  app.tunnel.outputEnded();
  expect(app.told()).toEqual(['ended', 'finish', 'closed whole']);
  const upstream = start();
  upstream.told();
  upstream.tunnel.outputEnded();
  expect(upstream.told()).toEqual([]);
  upstream.tunnel.inputEnded();
  expect(upstream.told()).toEqual(['ended', 'finish', 'closed whole']);
});

it('an HTTP/2 tunnel whose upstream closed is over once all has been sent', () => {
  const { tunnel, told } = start();
  told();
  tunnel.close();
  expect(told()).toEqual(['end output']);
  tunnel.outputEnded();
  expect(told()).toEqual(['finish', 'closed whole']);
  const sent = start();
  sent.tunnel.outputEnded();
  sent.told();
  sent.tunnel.close();
  expect(sent.told()).toEqual(['finish', 'closed whole']);
});

it.each<[string, (tunnel: Http2Tunnel) => void, string[]]>([
  ['reset', (tunnel) => tunnel.gone(true), ['closed broken']],
  ['left', (tunnel) => tunnel.gone(false), ['closed dropped']],
  ['idle for too long', (tunnel) => tunnel.drop(), [`finish ${ErrorCode.CANCEL}`, 'closed dropped']],
  ['broken off', (tunnel) => tunnel.breakOff(), [`finish ${ErrorCode.CONNECT_ERROR}`, 'closed dropped']],
])('an HTTP/2 tunnel that is %s is over once, whatever follows', (_, end, expected) => {
  const { tunnel, told } = start();
  told();
  end(tunnel);
  expect(told()).toEqual(expected);
  tunnel.gone(true);
  tunnel.drop();
  tunnel.breakOff();
  tunnel.outputEnded();
  expect(told()).toEqual([]);
});
