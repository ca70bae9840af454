/** The frames in what was sent to the app, one char an octet. */
export function framesIn(sent: string): { type: number; flags: number; streamId: number; payload: Buffer }[] {
  const octets = Buffer.from(sent, 'latin1');
  const frames = [];
  for (let at = 0; at + 9 <= octets.length; ) {
    const end = at + 9 + octets.readUIntBE(at, 3);
    const [type, flags] = [octets[at + 3] as number, octets[at + 4] as number];
    frames.push({
      type,
      flags,
      streamId: octets.readUInt32BE(at + 5),
      payload: octets.subarray(at + 9, end),
    });
    at = end;
  }
  return frames;
}
