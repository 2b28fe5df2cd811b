// At compile time: what is in the file would come back in the error text.
#include "/etc/shadow"
#include "/etc/hostname"
