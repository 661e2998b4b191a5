import type { Operation } from '../../contract/operations.ts';
import type { AuthenticationOutcome } from '../../redis/changes.ts';
import type { Admission } from '../switch/instance.ts';
import type { LegacyRequest } from './legacy.ts';

/** What a request authenticates with. */
export interface Credentials {
  organizationId: string;
  apiKey: string;
  /** What the organization's keys in Redis begin with. */
  base: string;
  /** Of the API key, as Redis knows it. */
  sha256: string;
  /** The headers that carry them: a name, its value, the next name … */
  headers: readonly string[];
  userAgent: string | undefined;
}

/** A change to forward, with what is needed to adopt it afterwards. */
export interface ForwardedChange {
  operation: Operation;
  credentials: Credentials | undefined;
  /** What Redis knows of their key; undefined if it was away. */
  found: AuthenticationOutcome | undefined;
  request: LegacyRequest;
  /** What its body says by the rules of the contract; rejects if it follows none. */
  readBody: () => Promise<unknown>;
  admission: Pick<Admission, 'mode' | 'epoch'>;
  /** Called once, when the change has been adopted or nothing has to be done; must not reject. */
  end: () => Promise<void>;
}
