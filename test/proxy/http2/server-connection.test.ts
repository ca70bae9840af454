import { describe, expect, test } from 'vitest';
import { LIMITS, ServerEnd } from './endpoint.ts';
import { frame, hex } from './frames.ts';

const DATA = 0;
const HEADERS = 1;
const PRIORITY = 2;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;

const END_STREAM = 1;
const END_HEADERS = 4;

/** `POST http://a/`. */
const POST = '83 86 84 01 01 61';
const LENGTH_3 = '0f 0d 01 33';

function headers(streamId: number, block = POST, flags = 0): Buffer {
  return frame(HEADERS, END_HEADERS | flags, streamId, block);
}

function data(streamId: number, text: string, flags = 0): Buffer {
  return frame(DATA, flags, streamId, Buffer.from(text));
}

const reset = (streamId: number, code: number): object => ({ kind: 'reset', streamId, code });
const request = { kind: 'ordinary', method: 'POST', scheme: 'http', authority: 'a', path: '/', fields: [] };

describe('an HTTP/2 server connection', () => {
  test('begins with its SETTINGS and acknowledges the peer’s', () => {
    const end = new ServerEnd({ connectionWindowBytes: 100_000 });
    end.connection.start();
    expect(end.said()).toEqual([
      {
        kind: 'settings',
        payload: hex('0003 00000064 0001 00001000 0004 0000ffff 0005 00004000 0006 00010000').toString(
          'latin1',
        ),
      },
      { kind: 'window_update', streamId: 0, increment: 34_465 },
    ]);
    expect(end.give(frame(SETTINGS, 0, 0), frame(SETTINGS, 1, 0))).toEqual([{ kind: 'settings_ack' }]);
    expect(end.fault).toBeUndefined();
  });

  test('knows whether its peer is amid a frame or a field block', () => {
    const end = ServerEnd.started();
    expect(end.connection.midFrameSinceMs).toBeUndefined();
    const octets = headers(1);
    end.give(octets.subarray(0, 4));
    expect(end.connection.midFrameSinceMs).toBeDefined();
    end.give(octets.subarray(4));
    expect(end.connection.midFrameSinceMs).toBeUndefined();
    end.give(frame(HEADERS, 0, 3, POST));
    expect(end.connection.midFrameSinceMs).toBeDefined();
  });

  test('must begin with SETTINGS', () => {
    const end = new ServerEnd();
    expect(end.give(frame(PING, 0, 0, '0000000000000000'))).toMatchObject([{ kind: 'goaway', code: 1 }]);
    expect(end.fault?.reason).toBe('preface_malformed');
  });

  test('answers PING', () => {
    expect(ServerEnd.started().give(frame(PING, 0, 0, '3132333435363738'))).toEqual([
      { kind: 'ping', ack: true, opaque: '12345678' },
    ]);
  });

  test('acknowledges every SETTINGS frame and refuses an unexpected acknowledgement', () => {
    const end = ServerEnd.started();
    expect(end.give(frame(SETTINGS, 0, 0), frame(SETTINGS, 1, 0))).toHaveLength(1);
    end.give(frame(SETTINGS, 1, 0));
    expect(end.fault?.reason).toBe('settings_ack_unasked');
  });

  test('names the last processed stream in GOAWAY, never a later one than before', () => {
    const end = ServerEnd.started();
    end.give(headers(1), headers(5));
    end.connection.announceGoaway();
    expect(end.said()).toMatchObject([{ kind: 'goaway', lastStreamId: 0x7fffffff, code: 0 }]);
    end.give(headers(7));
    end.connection.goaway(0);
    expect(end.said()).toMatchObject([{ kind: 'goaway', lastStreamId: 7, code: 0 }]);
    expect(end.give(headers(9))).toEqual([reset(9, 7)]);
    expect(end.give(frame(PING, 0, 0, '00'))).toMatchObject([{ kind: 'goaway', lastStreamId: 7, code: 6 }]);
  });
});

describe('a request at an HTTP/2 server connection', () => {
  test('may have body and trailers and gets its answer', () => {
    const end = ServerEnd.started();
    end.give(headers(1), data(1, 'abc'), headers(1, '00 01 78 01 79', END_STREAM));
    expect(end.told).toEqual([
      ['request', 1, request, false],
      ['data', 1, 'abc', false],
      ['trailers', 1, ['x', 'y']],
    ]);
    const stream = end.stream(1);
    end.connection.sendFields(stream, [':status', '200'], false);
    end.connection.sendData(stream, 2, false);
    end.connection.output.octets(Buffer.from('ok'));
    end.connection.sendFields(stream, ['grpc-status', '0'], true);
    expect(end.said()).toMatchObject([
      { kind: 'headers', streamId: 1, block: '\x88', endStream: false },
      { streamId: 1, data: 'ok' },
      { kind: 'headers', streamId: 1, endStream: true },
    ]);
    expect(end.connection.openStreams).toBe(0);
  });

  test('may be one of many at once', () => {
    const end = ServerEnd.started();
    end.give(headers(1), headers(3), data(3, 'x', END_STREAM), data(1, 'y', END_STREAM));
    expect(end.told.map(([event, id]) => `${event} ${id}`)).toEqual([
      'request 1',
      'request 3',
      'data 3',
      'data 1',
    ]);
  });

  test('is passed on with the names of its never-indexed fields', () => {
    const told: unknown[] = [];
    const end = ServerEnd.started(
      {},
      { request: (_stream, _request, _end, neverIndexed) => told.push(neverIndexed) },
    );
    end.give(headers(1, `${POST} 10 01 78 01 79`), headers(3));
    expect(told).toEqual([['x'], []]);
  });

  test('may be reset by the client', () => {
    const end = ServerEnd.started();
    end.give(headers(1), frame(RST_STREAM, 0, 1, '00000008'));
    expect(end.told.at(-1)).toEqual(['broken', 1, { kind: 'reset', code: 8 }]);
    expect(end.connection.openStreams).toBe(0);
  });

  test('that is too large to be read is reported so that it can be answered', () => {
    const section = { sectionBytes: 200, sectionFields: 100 };
    const end = ServerEnd.started({ section, targetBytes: 3 });
    end.give(
      headers(1, `${POST} ${'00 01 78 01 79'.repeat(10)}`),
      headers(3, '83 86 04 04 2f 78 78 78 01 01 61', END_STREAM),
    );
    expect(end.told).toEqual([
      ['refused', 1, 'fields_too_large'],
      ['refused', 3, 'path_too_long'],
    ]);
    end.connection.sendFields(end.stream(3), [':status', '414'], true);
    end.connection.sendFields(end.stream(1), [':status', '431'], true);
    end.connection.reset(end.stream(1), 0);
    expect(end.said()).toHaveLength(3);
    expect(end.connection.openStreams).toBe(0);
  });
});

test('a head that cannot be encoded sends no octet and leaves stream and table unchanged', () => {
  const end = ServerEnd.started();
  end.give(frame(SETTINGS, 0, 0, '0001 00000000'), headers(1));
  const stream = end.stream(1);
  expect(() => end.connection.sendFields(stream, [':status', '200', 'x', 'a\nb'], true)).toThrow('CR, LF');
  expect([end.connection.output.length, stream.state.kind]).toEqual([0, 'open']);
  end.connection.sendFields(stream, [':status', '200'], true);
  expect(end.said()).toMatchObject([{ kind: 'headers', block: '\x20\x88' }]);
});

describe('a stream error resets the stream and leaves the connection open', () => {
  test('HEADERS in a tunnel', () => {
    const end = ServerEnd.started();
    end.give(headers(1, '02 07 434f4e4e454354 01 03 613a31'));
    end.connection.sendFields(end.stream(1), [':status', '200'], false);
    end.said();
    expect(end.give(headers(1, '00 01 78 01 79', END_STREAM))).toEqual([reset(1, 1)]);
    expect(end.told.at(-1)).toEqual(['broken', 1, { kind: 'fault', reason: 'fields_in_tunnel' }]);
  });

  test.each<[string, Buffer[], number]>([
    ['malformed fields', [headers(1, `${POST} 00 01 41 01 78`)], 1],
    ['no path', [headers(1, '83 86 01 01 61')], 1],
    ['less data than its length', [headers(1, `${POST} ${LENGTH_3}`), data(1, 'ab', END_STREAM)], 1],
    ['more data than its length', [headers(1, `${POST} ${LENGTH_3}`), data(1, 'abcd')], 1],
    ['a length and no data', [headers(1, `${POST} ${LENGTH_3}`, END_STREAM)], 1],
    [
      'less data than its length, with trailers',
      [headers(1, `${POST} ${LENGTH_3}`), headers(1, '00 01 78 01 79', END_STREAM)],
      1,
    ],
    ['trailers that do not end it', [headers(1), headers(1, '00 01 78 01 79')], 1],
    ['pseudo-fields in trailers', [headers(1), headers(1, '88', END_STREAM)], 1],
    ['data after its end', [headers(1, POST, END_STREAM), data(1, 'x')], 5],
    ['headers after its end', [headers(1, POST, END_STREAM), headers(1, '00 01 78 01 79', END_STREAM)], 5],
    ['data after the client’s reset', [headers(1), frame(RST_STREAM, 0, 1, '00000008'), data(1, 'x')], 5],
    ['a dependency on itself', [frame(HEADERS, 0x24, 1, `00000001 00 ${POST}`)], 1],
    ['a dependency on itself, later', [headers(1), frame(PRIORITY, 0, 1, '00000001 00')], 1],
    ['PRIORITY of another length', [headers(1), frame(PRIORITY, 0, 1, '00000000')], 6],
    ['WINDOW_UPDATE of nothing', [headers(1), frame(WINDOW_UPDATE, 0, 1, '00000000')], 1],
    ['a window that is too large', [headers(1), frame(WINDOW_UPDATE, 0, 1, '7fffffff')], 3],
  ])('%s', (_name, octets, code) => {
    const end = ServerEnd.started();
    expect(end.give(...octets)).toEqual([reset(1, code)]);
    expect(end.fault).toBeUndefined();
    expect(end.connection.openStreams).toBe(0);
    // What was under way is let pass.
    expect(end.give(data(1, 'late'), frame(RST_STREAM, 0, 1, '00000008'))).toEqual([]);
    end.give(headers(3));
    expect(end.told.at(-1)).toEqual(['request', 3, request, false]);
  });

  test('PRIORITY of a wrong length, even after the stream ended, and only once', () => {
    const end = ServerEnd.started();
    end.give(headers(1, POST, END_STREAM));
    end.connection.sendFields(end.stream(1), [':status', '200'], true);
    end.said();
    expect(end.give(frame(PRIORITY, 0, 1, '00000000'))).toEqual([reset(1, 6)]);
    expect(end.give(frame(PRIORITY, 0, 1, '00000000'))).toEqual([]);
    end.give(headers(3), frame(RST_STREAM, 0, 3, '00000008'));
    expect(end.give(frame(PRIORITY, 0, 3, '00000000'))).toEqual([reset(3, 6)]);
  });

  test('streams over the limit get REFUSED_STREAM', () => {
    const end = ServerEnd.started({ maxStreams: 2 });
    expect(end.give(headers(1), headers(3), headers(5))).toEqual([reset(5, 7)]);
    end.connection.sendFields(end.stream(1), [':status', '200'], true);
    end.connection.reset(end.stream(1), 0);
    end.give(headers(7));
    expect(end.told.at(-1)?.slice(0, 2)).toEqual(['request', 7]);
  });

  test('the field block of an unwanted stream is decoded all the same', () => {
    const end = ServerEnd.started({ maxStreams: 1 });
    end.give(headers(1), headers(3, `${POST} 40 01 78 01 79`), frame(RST_STREAM, 0, 1, '00000008'));
    end.give(headers(5, `${POST} be`));
    expect(end.told.at(-1)).toEqual(['request', 5, { ...request, fields: ['x', 'y'] }, false]);
  });
});

describe('a connection error ends the HTTP/2 connection', () => {
  test.each<[string, Buffer[], number]>([
    ['stream_idle', [data(1, 'x')], 1],
    ['stream_idle', [frame(RST_STREAM, 0, 1, '00000008')], 1],
    ['stream_idle', [frame(WINDOW_UPDATE, 0, 1, '00000001')], 1],
    ['stream_id_invalid', [headers(2)], 1],
    ['stream_id_invalid', [headers(5), headers(3)], 1],
    ['hpack_index', [headers(1, 'be')], 9],
    ['hpack_index', [headers(1), headers(1, 'be', END_STREAM)], 9],
    ['window_overflow', [frame(WINDOW_UPDATE, 0, 0, '7fffffff')], 3],
    [
      'window_overflow',
      [headers(1), frame(WINDOW_UPDATE, 0, 1, '00010000'), frame(SETTINGS, 0, 0, '0004 7fffffff')],
      3,
    ],
    ['settings_window', [frame(SETTINGS, 0, 0, '0004 80000000')], 3],
    ['settings_frame_size', [frame(SETTINGS, 0, 0, '0005 00000000')], 1],
    ['frame_too_large', [frame(DATA, 0, 1, Buffer.alloc(16_385))], 6],
    ['push_refused', [frame(5, 4, 1, '00000002')], 1],
    ['self_dependency', [frame(PRIORITY, 0, 9, '00000009 00')], 1],
    [
      'window_exceeded',
      [headers(1), headers(3), ...Array.from({ length: 5 }, () => data(1, 'x'.repeat(16_000)))],
      3,
    ],
  ])('%s', (reason, octets, code) => {
    const end = ServerEnd.started({}, { data() {} });
    expect(end.give(...octets).at(-1)).toMatchObject({ kind: 'goaway', code });
    expect(end.fault?.reason).toBe(reason);
    expect(end.give(headers(99))).toEqual([]);
  });

  test('DATA on a stream that both sides have ended', () => {
    const end = ServerEnd.started();
    end.give(headers(1, POST, END_STREAM));
    end.connection.sendFields(end.stream(1), [':status', '200'], true);
    end.said();
    expect(end.give(data(1, 'x'))).toMatchObject([{ kind: 'goaway', lastStreamId: 1, code: 5 }]);
  });
});

describe('flow control of an HTTP/2 server connection', () => {
  test('sends no more than both windows and the peer’s frame size allow', () => {
    const end = ServerEnd.started();
    end.give(frame(SETTINGS, 0, 0, '0004 00007530 0005 00005000'), headers(1));
    const stream = end.stream(1);
    expect(end.connection.sendable(stream)).toBe(0x5000);
    end.connection.sendData(stream, 0x5000, false);
    expect(end.connection.sendable(stream)).toBe(0x7530 - 0x5000);
    end.give(frame(SETTINGS, 0, 0, '0004 00000000'));
    expect(end.connection.sendable(stream)).toBe(0);
    expect(stream.sendWindow.available).toBe(-0x5000);
    end.give(frame(WINDOW_UPDATE, 0, 1, '00005001'));
    expect(end.connection.sendable(stream)).toBe(1);
    expect(end.told.at(-1)).toEqual(['writable', 1]);
    end.give(frame(WINDOW_UPDATE, 0, 0, '00005001'), frame(SETTINGS, 0, 0, '0004 00000100'));
    expect(end.told.slice(-2)).toEqual([
      ['writable', 0],
      ['writable', 0],
    ]);
    expect(end.connection.sendable(stream)).toBe(0x101);
  });

  test('returns the window of consumed bytes, and of padding at once', () => {
    const end = ServerEnd.started({}, { data() {} });
    const padded = frame(DATA, 8, 1, Buffer.concat([Buffer.from([255]), Buffer.alloc(16_000 + 255)]));
    expect(end.give(headers(1), padded, padded, padded, padded)).toEqual([]);
    end.connection.consume(end.stream(1), 32_000);
    expect(end.said()).toEqual([
      { kind: 'window_update', streamId: 0, increment: 33_024 },
      { kind: 'window_update', streamId: 1, increment: 33_024 },
    ]);
  });

  test('returns the connection window of bytes that came for reset streams', () => {
    const end = ServerEnd.started();
    end.give(headers(1));
    end.connection.reset(end.stream(1), 8);
    end.said();
    const late = Array.from({ length: 3 }, () => data(1, 'x'.repeat(16_000)));
    expect(end.give(...late)).toEqual([{ kind: 'window_update', streamId: 0, increment: 48_000 }]);
  });

  test('resets a stream that exceeds its window while the connection window has room', () => {
    const end = ServerEnd.started({ connectionWindowBytes: 1_000_000 }, { data() {} });
    const much = Array.from({ length: 5 }, () => data(1, 'x'.repeat(16_000)));
    expect(end.give(headers(1), ...much)).toEqual([reset(1, 3)]);
    expect(end.fault).toBeUndefined();
  });
});

describe('the abuse limits of an HTTP/2 server connection', () => {
  const few = { burst: 10, perSecond: 0 };
  const abuse = {
    ...LIMITS.abuse,
    reset: few,
    fault: few,
    ping: few,
    settings: few,
    empty_data: few,
    window_update: few,
    ignored_frame: few,
  };
  const each = (make: (streamId: number) => Buffer): Buffer[] =>
    Array.from({ length: 12 }, (_, index) => make(index * 2 + 3));

  test.each<[string, Buffer[]]>([
    ['reset_flood', each((id) => Buffer.concat([headers(id), frame(RST_STREAM, 0, id, '00000008')]))],
    ['fault_flood', each((id) => Buffer.concat([headers(id), frame(WINDOW_UPDATE, 0, id, '00000000')]))],
    ['fault_flood', each((id) => headers(id, '83'))],
    ['ping_flood', each(() => frame(PING, 0, 0, '0000000000000000'))],
    ['settings_flood', each(() => frame(SETTINGS, 0, 0))],
    ['empty_data_flood', [headers(1), ...each(() => data(1, ''))]],
    ['window_update_flood', [headers(1), ...each(() => frame(WINDOW_UPDATE, 0, 1, '00000001'))]],
    ['ignored_frame_flood', each(() => frame(PRIORITY, 0, 9, '00000000 00'))],
    ['ignored_frame_flood', each(() => frame(0xbe, 0, 9))],
    ['ignored_frame_flood', [headers(1), frame(RST_STREAM, 0, 1, '00000008'), ...each(() => data(1, 'x'))]],
  ])('%s', (reason, octets) => {
    const end = ServerEnd.started({ abuse });
    const said = end.give(...octets);
    expect(said.at(-1)).toMatchObject({ kind: 'goaway', code: 0xb });
    expect(end.fault?.reason).toBe(reason);
  });

  test.each([
    ['useful streams offset', true],
    ['other streams do not offset', false],
  ])('%s resets', (_, useful) => {
    const end = ServerEnd.started({ abuse });
    for (let id = 1; id < 400 && end.fault === undefined; id += 4) {
      end.give(headers(id, POST, END_STREAM));
      end.connection.sendFields(end.stream(id), [':status', '200'], true);
      if (useful) end.connection.wasUseful();
      end.give(headers(id + 2), frame(RST_STREAM, 0, id + 2, '00000008'));
    }
    expect(end.fault?.reason).toBe(useful ? undefined : 'reset_flood');
  });

  test('let sent DATA offset PING and WINDOW_UPDATE', () => {
    const end = ServerEnd.started({ abuse });
    end.give(headers(1));
    const stream = end.stream(1);
    for (let count = 0; count < 50; count++) {
      end.connection.sendData(stream, 1, false);
      const update = frame(WINDOW_UPDATE, 0, 1, '00000001');
      end.give(frame(PING, 0, 0, '0000000000000000'), update, update);
    }
    expect(end.fault).toBeUndefined();
  });

  test('do not count any number of WINDOW_UPDATE that return what was sent', () => {
    const end = ServerEnd.started({ abuse });
    end.give(headers(1));
    const stream = end.stream(1);
    const updates = [0, 1, 0, 1, 0, 1, 0, 1].map((id) => frame(WINDOW_UPDATE, 0, id, '00001000'));
    for (let count = 0; count < 50; count++) {
      end.connection.sendData(stream, 16_384, false);
      end.connection.output.take();
      end.give(...updates);
    }
    expect(end.fault).toBeUndefined();
    // More than was sent is given back.
    end.give(...updates, ...updates);
    expect(end.fault?.reason).toBe('window_update_flood');
  });

  test.each([
    ['in 1024 octets or more is not counted', '00000400', undefined],
    ['in fewer octets is counted', '000003ff', 'window_update_flood'],
  ])('a WINDOW_UPDATE that returns what was sent %s', (_, increment, fault) => {
    const end = ServerEnd.started({ abuse });
    end.give(headers(1));
    end.connection.sendData(end.stream(1), 16_384, false);
    end.connection.output.take();
    end.give(...Array.from({ length: 16 }, () => frame(WINDOW_UPDATE, 0, 1, increment)));
    expect(end.fault?.reason).toBe(fault);
  });

  test('do not count DATA already under way when its stream was reset, up to its window', () => {
    const end = ServerEnd.started({ abuse });
    end.give(headers(1));
    end.connection.reset(end.stream(1), 8);
    end.give(...Array.from({ length: 65 }, () => data(1, 'x'.repeat(1000))));
    expect(end.fault).toBeUndefined();
    // Beyond the window each frame counts, and counts once.
    const cut = data(1, 'x'.repeat(1000));
    for (let count = 0; count < 10; count++) {
      for (let at = 0; at < cut.length; at += 100) end.give(cut.subarray(at, at + 100));
      expect(end.fault).toBeUndefined();
    }
    end.give(cut);
    expect(end.fault?.reason).toBe('ignored_frame_flood');
  });

  test('do not count frames under way to streams that this side reset or refused', () => {
    const end = ServerEnd.started({ abuse, maxStreams: 1 });
    end.give(headers(1), headers(3));
    end.give(...Array.from({ length: 65 }, () => data(3, 'x'.repeat(1000))));
    expect(end.fault).toBeUndefined();
    end.connection.reset(end.stream(1), 8);
    // Four for each of the two, and nine that are left after the refusal.
    const late = frame(HEADERS, 4, 1, '00 01 78 01 79');
    end.give(...Array.from({ length: 8 + 9 }, () => late));
    expect(end.fault).toBeUndefined();
    end.give(late);
    expect(end.fault?.reason).toBe('ignored_frame_flood');
  });

  test('let received DATA offset empty frames', () => {
    const end = ServerEnd.started({ abuse });
    end.give(headers(1));
    for (let count = 0; count < 50; count++) end.give(data(1, ''), data(1, 'x'));
    expect(end.fault).toBeUndefined();
  });

  test('do not count refused streams of a client that has not read SETTINGS yet', () => {
    const end = ServerEnd.started({ maxStreams: 1 });
    const many = Array.from({ length: 1000 }, (_, index) => headers(index * 2 + 1));
    expect(end.give(...many)).toHaveLength(999);
    expect(end.fault).toBeUndefined();
  });
});

test('a GOAWAY from the client is reported, and its streams go on', () => {
  const end = ServerEnd.started();
  end.give(headers(1), frame(GOAWAY, 0, 0, '00000000 00000000 627965'));
  expect(end.told.at(-1)).toEqual(['goaway', 0, 0, 'bye']);
  end.connection.sendFields(end.stream(1), [':status', '200'], true);
});
