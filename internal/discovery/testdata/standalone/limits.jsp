<%@ page contentType="text/plain; charset=UTF-8" trimDirectiveWhitespaces="true"
    import="java.lang.management.ManagementFactory,javax.management.MBeanAttributeInfo,javax.management.MBeanServer,javax.management.ObjectName" %><%
// What Tomcat's own MBeans say: one "bean attribute=value" a line.
MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
for (String type : new String[] {"ThreadPool", "Executor", "ProtocolHandler"}) {
    for (ObjectName name : beans.queryNames(new ObjectName("*:type=" + type + ",*"), null)) {
        for (MBeanAttributeInfo info : beans.getMBeanInfo(name).getAttributes()) {
            Object value = null;
            try {
                value = beans.getAttribute(name, info.getName());
            } catch (Exception unreadable) {
                // is not a limit
            }
            if (value instanceof Number || value instanceof Boolean) {
                out.print(name + " " + info.getName() + "=" + value + "\n");
            }
        }
    }
}
%>
