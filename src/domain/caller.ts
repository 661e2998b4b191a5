/** The caller that an API key identifies. The user id and the key itself are never logged. */
export interface Caller {
  /** The key's public id. */
  keyId: string;
  role: 'player' | 'admin';
  /** The user the key acts for; profile operations need one. */
  userId?: string;
  /** The client's label, such as `ios-4.2`. */
  client?: string;
}
