import { type Fields, fieldValues } from './fields.ts';

/** By which apps, proxies and logs know a request again. */
export const REQUEST_ID_FIELD = 'x-request-id';

/** What may stand in logs and answers as it came: nothing that could end a line or a field, and not too much of it. */
const ACCEPTABLE = /^[\w.:=+/@-]{1,128}$/;

/** The id that the app gave its request; undefined where it gave none, several, or one that is not acceptable. */
export function givenRequestId(fields: Fields): string | undefined {
  const [id, ...others] = fieldValues(fields, REQUEST_ID_FIELD);
  return id !== undefined && others.length === 0 && ACCEPTABLE.test(id) ? id : undefined;
}
