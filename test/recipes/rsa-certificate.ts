import { type KeyObject, sign } from 'node:crypto';
import { der, integer, oid, sequence, set, utcTime } from '../support/der.ts';

/** A self-signed certificate (RFC 5280) of an RSA key, as cert-manager makes them for clients. PEM. */
export function rsaCertificate(privateKey: KeyObject, publicKey: KeyObject): string {
  const algorithm = sequence(oid('2a864886f70d01010b'), der(0x05, Buffer.alloc(0)));
  const name = sequence(set(sequence(oid('550403'), der(0x0c, Buffer.from('the-client')))));
  const content = sequence(
    der(0xa0, integer('02')),
    integer('01'),
    algorithm,
    name,
    sequence(utcTime('200101000000Z'), utcTime('491231235959Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = sign('sha256', content, privateKey);
  const signed = sequence(content, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = signed.toString('base64').replace(/.{64}/g, '$&\n').trimEnd();
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}
